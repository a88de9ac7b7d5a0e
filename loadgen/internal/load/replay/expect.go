package replay

import (
	"cmp"
	"slices"
	"time"

	"github.com/stormglass/stormglass/loadgen/internal/builtin"
	"github.com/stormglass/stormglass/loadgen/internal/recording"
)

// Expected is a forecast for a replay of a certain length: the requests that it sends and the objects that it creates.
// The forecast assumes that the API server accepts the objects and answers as in the recording.
type Expected struct {
	Requests []ExpectedRequests // by verb and resource, in the order of Load's results
	LeftOut  map[string]int64   // number of unsent requests, by reason
	Cut      map[string]int64   // number of requests whose bodies are cut, by the size that is sent
	// Made is the number of objects that the load creates before the replay. Created is the number of objects that
	// requests create. Both are by resource.
	Made, Created map[string]int
	Watches       int // maximum number of watches that are open at one time
	// Last is the time of the last request in the schedule or, if there are requests after the given length, the time
	// of the first of them.
	Last time.Duration
}

// ExpectedRequests are the expected requests with one verb and resource.
type ExpectedRequests struct {
	Verb, Resource string
	Count, Mapped  int64   // number of requests, and the number of those sent to ConfigMaps instead
	Sent           float64 // mean size of the bodies, in bytes
}

// Expect returns the forecast for a replay of the given length. The keys of `namespaced` are the resources that the
// cluster serves. A value is true if the resource is namespaced.
func Expect(t *recording.Recording, o Options, namespaced map[string]bool, length time.Duration) Expected {
	p := newPlan(t, o, make([]string, Namespaces(t, o.Copies)))
	for i := range p.actions {
		in, known := namespaced[p.actions[i].shape.GroupResource()]
		p.actions[i].decide(facts{lacking: !known, namespaced: in})
	}
	p.schedule()
	all := Expected{LeftOut: p.leftOut, Cut: p.cut, Made: map[string]int{}, Created: map[string]int{}}
	for _, k := range p.kinds {
		all.Requests = append(all.Requests, ExpectedRequests{Verb: k.Verb, Resource: k.Resource})
	}
	made, first := p.beforehand()
	for _, m := range made {
		all.Made[p.actions[t.Entries[first[m.Object]].Shape].target()]++
	}
	type edge struct {
		at   time.Duration
		step int
	}
	var edges []edge // begins and ends of watches
	for _, a := range p.all {
		if all.Last = a.At; a.At >= length {
			break
		}
		e := &t.Entries[a.Entry]
		act := &p.actions[e.Shape]
		r := &all.Requests[act.kind]
		r.Count++
		r.Sent += (float64(min(int(e.Size), act.most)) - r.Sent) / float64(r.Count)
		if act.fate == asConfigMap {
			r.Mapped++
		}
		if creates(act.shape, e.Code) {
			all.Created[act.target()]++
		}
		if act.shape.Verb == "watch" {
			edges = append(edges, edge{a.At, 1}, edge{a.At + cmp.Or(e.Took.D(), length), -1})
		}
	}
	slices.SortFunc(edges, func(a, b edge) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.step, b.step)) })
	open := 0
	for _, e := range edges {
		open += e.step
		all.Watches = max(all.Watches, open)
	}
	return all
}

// target returns the name of the resource to which the requests are sent.
func (act *action) target() string {
	if act.fate == asConfigMap {
		return configMaps
	}
	return act.shape.GroupResource()
}

// creates reports whether a recorded request with the given status code created an object.
func creates(s recording.Shape, code int16) bool {
	if s.Subresource != "" || s.DryRun || builtin.IsReview(s.GroupResource()) {
		return false
	}
	return s.Verb == "create" && (code == 0 || 200 <= code && code < 300) || code == 201 && (s.Verb == "patch" || s.Verb == "update")
}
