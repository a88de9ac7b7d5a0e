package replay

import (
	"maps"
	"testing"
	"time"

	"github.com/stormglass/stormglass/loadgen/internal/recording"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

// A replay sends, maps, leaves out and creates what Expect returns.
func TestExpectedIsWhatIsSent(t *testing.T) {
	var all []recording.Request
	add := func(verb, resource, name string, code int, change func(*recording.Request)) {
		r := one(verb, resource, name, code)
		r.At = recording.Micros(1000 * len(all))
		if change != nil {
			change(&r)
		}
		all = append(all, r)
	}
	clusterScoped := func(r *recording.Request) { r.Namespace = "" }
	add("get", "configmaps", "settings", 200, nil)
	add("create", "pods", "web", 201, nil)
	add("create", "pods", "web", 409, nil)
	add("update", "configmaps", "settings", 200, nil)
	add("create", "nodes", "n", 201, clusterScoped)
	add("get", "nodes", "n", 200, clusterScoped)
	add("list", "pods", "", 200, nil)
	add("get", "pods", "web", 200, func(r *recording.Request) { r.Subresource = "log" })
	add("create", "pods", "web", 201, func(r *recording.Request) { r.Subresource = "binding" })
	add("delete", "configmaps", "settings", 200, nil)
	tr := recordingOf(t, all...)
	const copies = 2
	_, r := replayed(t, newStub(t), tr, func(l *scenario.Load) { l.Copies = copies })
	namespaced := map[string]bool{"pods": true, "nodes": false, "configmaps": true}
	x := Expect(tr, Options{Name: "tuesday", Seed: 1, Speed: 1, Copies: copies}, namespaced, time.Minute)
	sent := map[[2]string]int64{}
	for _, k := range r.Kinds {
		sent[[2]string{k.Verb, k.Resource}] = k.Sent
	}
	mapped := int64(0)
	for _, k := range x.Requests {
		if k.Count != sent[[2]string{k.Verb, k.Resource}] {
			t.Errorf("%d %s %s expected, but %d sent", k.Count, k.Verb, k.Resource, sent[[2]string{k.Verb, k.Resource}])
		}
		mapped += k.Mapped
	}
	if made := x.Made["configmaps"]; int64(made) != r.Made || made != copies || len(x.Made) != 1 {
		t.Errorf("%v objects expected beforehand, but %d created", x.Made, r.Made)
	}
	if !maps.Equal(x.LeftOut, r.LeftOut) || x.LeftOut[reasonStream] != 1 || x.LeftOut[reasonBinding] != 1 {
		t.Errorf("expected to omit %v, but omitted %v", x.LeftOut, r.LeftOut)
	}
	if mapped != copies*r.Mapped["nodes"] || mapped != copies {
		t.Errorf("%d requests expected to be mapped, but %v of the recording were", mapped, r.Mapped)
	}
	if want := map[string]int{"pods": copies, "configmaps": copies}; !maps.Equal(x.Created, want) {
		t.Errorf("created %v, want %v", x.Created, want)
	}
	if short := Expect(tr, Options{Name: "tuesday", Seed: 1, Speed: 1, Copies: 1}, namespaced, time.Millisecond); short.Requests[0].Count != 1 || short.Created["pods"] != 0 {
		t.Errorf("in the first millisecond: %+v", short)
	}
}

func TestExpectedWatchesAreThoseOpenAtOneTime(t *testing.T) {
	watch := func(at, took recording.Micros) recording.Request {
		r := one("watch", "pods", "", 200)
		r.At, r.Took = at*1e6, took*1e6
		return r
	}
	tr := recordingOf(t, watch(0, 10), watch(5, 10), watch(10, 10), watch(30, 0), watch(31, 1), watch(40, 1))
	namespaced := map[string]bool{"pods": true}
	for length, want := range map[time.Duration]int{time.Second: 1, time.Minute: 2} {
		if got := Expect(tr, Options{Speed: 1, Copies: 1}, namespaced, length).Watches; got != want {
			t.Errorf("%d watches are open within %s, want %d", got, length, want)
		}
	}
}
