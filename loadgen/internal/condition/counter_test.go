package condition

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"k8s.io/apimachinery/pkg/labels"
)

// TestCountsEqualBruteForce changes objects at random and compares the incremental counts with a full recount.
func TestCountsEqualBruteForce(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	c, err := Parse(`count(pods where status.phase == "Running") > 0 && pods.exists(p, p.metadata.labels.app == "web") && pods.size() > 0`, nil)
	if err != nil {
		t.Fatal(err)
	}
	test, err := ParseTest("pods", "condition=Ready", nil)
	if err != nil {
		t.Fatal(err)
	}
	web := labels.SelectorFromSet(labels.Set{"app": "web"})
	counts := append(c.Counts, OfObjects("", Count{Selector: web, Test: test}, All).Counts...)
	counts = append(counts, OfObjects("", Count{Name: "other", Test: test}, All).Counts...)
	kept, objects := NewCounter(counts), map[string]Object{}
	for step := range 5000 {
		key := fmt.Sprint(random.IntN(50))
		if random.IntN(4) == 0 {
			kept.Delete(key)
			delete(objects, key)
		} else {
			o := pod([]string{"Running", "Pending", ""}[random.IntN(3)], []string{"app=web", "app=db", "tier=x"}[random.IntN(3)])
			if random.IntN(5) == 0 {
				o["metadata"].(map[string]any)["name"] = "other"
			}
			kept.Put(key, o)
			objects[key] = o
		}
		anew := NewCounter(counts)
		for key, o := range objects {
			anew.Put(key, o)
		}
		for i := range counts {
			got, want := kept.Tally(i), anew.Tally(i)
			if got.Err, want.Err = nil, nil; got != want {
				t.Fatalf("seed %d, step %d, count %d: incremental %+v, full recount %+v", seed, step, i, got, want)
			}
		}
	}
}

// BenchmarkPut measures the cost of one event if there are 10,000 objects.
func BenchmarkPut(b *testing.B) {
	c, err := Parse(`count(pods where status.phase == "Running") >= 950`, nil)
	if err != nil {
		b.Fatal(err)
	}
	counter := NewCounter(c.Counts)
	for i := range 10_000 {
		counter.Put(fmt.Sprint(i), pod("Pending"))
	}
	running, pending := pod("Running"), pod("Pending")
	for i := 0; b.Loop(); i++ {
		o := running
		if i%2 == 0 {
			o = pending
		}
		counter.Put("7", o)
		if _, err := c.Holds([]Tally{counter.Tally(0)}); err != nil {
			b.Fatal(err)
		}
	}
}
