package condition

import (
	"k8s.io/apimachinery/pkg/labels"
)

// Object is an object decoded from the API server's JSON, with whole numbers as int64.
type Object = map[string]any

// Counter keeps a Tally for each of several Counts of the same Set of objects. The zero value counts nothing.
type Counter struct {
	counts  []Count
	tallies []Tally
	objects map[string][]verdict
}

// verdict is the result of a Count for one object.
type verdict uint8

const (
	unselected verdict = iota
	selected
	holds
	failed
)

// NewCounter returns a Counter without objects.
func NewCounter(counts []Count) *Counter {
	return &Counter{counts: counts, tallies: make([]Tally, len(counts)), objects: map[string][]verdict{}}
}

// Put adds or updates an object. key identifies the object and must not change when the object changes.
func (c *Counter) Put(key string, o Object) {
	if len(c.counts) == 0 {
		return
	}
	verdicts, known := c.objects[key]
	if !known {
		verdicts = make([]verdict, len(c.counts))
		c.objects[key] = verdicts
	}
	for i := range c.counts {
		now, err := c.counts[i].judge(o)
		c.tallies[i].add(verdicts[i], -1)
		c.tallies[i].add(now, 1)
		verdicts[i] = now
		if err != nil {
			c.tallies[i].Err = err
		}
	}
}

// Delete removes an object.
func (c *Counter) Delete(key string) {
	for i, v := range c.objects[key] {
		c.tallies[i].add(v, -1)
	}
	delete(c.objects, key)
}

// Tally returns the Tally of the Count with index i.
func (c *Counter) Tally(i int) Tally { return c.tallies[i] }

func (t *Tally) add(v verdict, by int) {
	if v == unselected {
		return
	}
	t.Selected += by
	switch v {
	case holds:
		t.Holds += by
	case failed:
		t.Failed += by
	}
}

func (c *Count) judge(o Object) (verdict, error) {
	if !Selects(c.Name, c.Selector, o) {
		return unselected, nil
	}
	ok, err := c.Test.Holds(o)
	switch {
	case err != nil:
		return failed, err
	case ok:
		return holds, nil
	}
	return selected, nil
}

// Selects reports whether an object has the given name and matches the label selector. An empty name and a nil selector
// match any object.
func Selects(name string, selector labels.Selector, o Object) bool {
	meta, _ := o["metadata"].(map[string]any)
	if name != "" && meta["name"] != name {
		return false
	}
	if selector == nil || selector.Empty() {
		return true
	}
	set := labels.Set{}
	all, _ := meta["labels"].(map[string]any)
	for key, value := range all {
		set[key], _ = value.(string)
	}
	return selector.Matches(set)
}
