package follow

import (
	"time"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/stormglass/stormglass/loadgen/internal/condition"
	"github.com/stormglass/stormglass/loadgen/internal/latency"
	"github.com/stormglass/stormglass/loadgen/result"
)

// Transition is a change of objects from one state to another. The Follower measures how long it takes.
type Transition struct {
	Name     string
	Set      condition.Set
	Selector labels.Selector
	From, To condition.State
}

// longest is the largest duration that the histograms can distinguish.
const longest = time.Hour

// passage measures one Transition. It has no clock, no lock and no I/O.
type passage struct {
	Transition
	objects map[string]*object // progress of each object, by UID
	// early is for Services whose endpoints were seen before the Service itself. It maps a Service (namespace/name) to
	// the time at which an EndpointSlice with a ready endpoint was first seen.
	early map[string]time.Time
	// byName maps the namespace/name of each object to its UID.
	byName map[string]string
	phases map[string]*passing
	phase  *passing
	// stalled returns how long the generator was stalled, in total, up to the given time.
	stalled func(time.Time) time.Duration
}

// object is the progress of one object through a transition.
type object struct {
	name       string   // namespace/name
	unmeasured bool     // whether the start is unknown, because the object was in the state From when first listed
	phase      *passing // the phase in which the object reached the state From; nil if it has not
	at         time.Time
	stalled    time.Duration // total length of the generator's stalls before at
	done       bool          // whether the object reached the state To
}

// passing holds the results of the objects that reached the state From in one phase. began is their number, gone the
// number of those that were deleted before they reached To. unmeasured is the number of objects that were in From when
// they were first listed.
type passing struct {
	began, gone, unmeasured int64
	relists                 int64
	latency, external       *latency.Histogram
}

func newPassage(t Transition, stalled func(time.Time) time.Duration) *passage {
	p := &passage{
		Transition: t, objects: map[string]*object{}, early: map[string]time.Time{}, byName: map[string]string{},
		phases: map[string]*passing{}, stalled: stalled,
	}
	p.beginPhase("")
	return p
}

func (p *passage) beginPhase(name string) {
	now, again := p.phases[name]
	if !again {
		now = &passing{latency: latency.New(longest), external: latency.New(longest)}
		p.phases[name] = now
	}
	p.phase = now
}

// saw processes an object that arrived at the time `at`. If listed is true, the object came from a list, so it may have
// been in its state for a long time.
func (p *passage) saw(uid string, o condition.Object, at time.Time, listed bool) {
	if !condition.Selects("", p.Selector, o) {
		return
	}
	x, known := p.objects[uid]
	if !known {
		meta, _ := o["metadata"].(map[string]any)
		namespace, _ := meta["namespace"].(string)
		name, _ := meta["name"].(string)
		x = &object{name: namespace + "/" + name}
		p.objects[uid] = x
		p.byName[x.name] = uid
	}
	if x.done || x.unmeasured {
		return
	}
	if x.phase == nil {
		if !in(p.From, o) {
			return
		}
		if listed {
			x.unmeasured = true
			p.phase.unmeasured++
			delete(p.early, x.name)
			return
		}
		x.phase, x.at, x.stalled = p.phase, at, p.stalled(at)
		x.phase.began++
		if served, ok := p.early[x.name]; ok {
			delete(p.early, x.name)
			p.finish(x, later(served, at))
			return
		}
	}
	if p.To.Kind == condition.Tested && in(p.To, o) {
		p.finish(x, at)
	}
}

// sawSlice processes an EndpointSlice that was added or modified.
func (p *passage) sawSlice(slice condition.Object, at time.Time) {
	namespace, service, ready := condition.HasReadyEndpoint(slice)
	if !ready {
		return
	}
	name := namespace + "/" + service
	switch x := p.objects[p.byName[name]]; {
	case x == nil:
		if _, known := p.early[name]; !known {
			p.early[name] = at
		}
	case x.phase != nil && !x.done:
		p.finish(x, at)
	}
}

func (p *passage) sliceGone(slice condition.Object) {
	namespace, service, _ := condition.HasReadyEndpoint(slice)
	delete(p.early, namespace+"/"+service)
}

func (p *passage) gone(uid string, at time.Time) {
	x, known := p.objects[uid]
	if !known {
		return
	}
	switch {
	case x.phase == nil || x.done:
	case p.To.Kind == condition.Deleted:
		p.finish(x, at)
	default:
		x.phase.gone++
	}
	delete(p.objects, uid)
	if p.byName[x.name] == uid {
		delete(p.byName, x.name)
	}
}

func (p *passage) finish(x *object, at time.Time) {
	x.done = true
	took := at.Sub(x.at)
	x.phase.latency.Record(took)
	x.phase.external.Record(took - (p.stalled(at) - x.stalled))
}

// results returns the results by phase. An object that has not reached To counts with its duration up to the time
// `now`.
func (p *passage) results(now time.Time) map[string]result.Transition {
	type ages struct{ all, external []time.Duration }
	open := map[*passing]*ages{}
	for _, x := range p.objects {
		if x.phase == nil || x.done {
			continue
		}
		of := open[x.phase]
		if of == nil {
			of = &ages{}
			open[x.phase] = of
		}
		age := now.Sub(x.at)
		of.all = append(of.all, age)
		of.external = append(of.external, age-(p.stalled(now)-x.stalled))
	}
	all := map[string]result.Transition{}
	for name, ph := range p.phases {
		if ph.began == 0 && ph.unmeasured == 0 {
			continue
		}
		t := result.Transition{
			Name: p.Name, Resource: p.Set.Resource, From: p.From.Text, To: p.To.Text,
			Began: ph.began, Gone: ph.gone, Unmeasured: ph.unmeasured, Relists: ph.relists,
			Latency: ph.latency.Latency(), External: ph.external.Latency(),
		}
		if of := open[ph]; of != nil {
			t.Open = int64(len(of.all))
			t.Latency, t.External = ph.latency.WithOpen(t.Open), ph.external.WithOpen(t.Open)
			t.SoFar, t.ExternalSoFar = new(ph.latency.With(of.all)), new(ph.external.With(of.external))
		}
		all[name] = t
	}
	return all
}

func in(s condition.State, o condition.Object) bool {
	if s.Kind == condition.Created {
		return true
	}
	ok, err := s.Test.Holds(o)
	return ok && err == nil
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
