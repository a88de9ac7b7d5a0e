package replay

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stormglass/stormglass/loadgen/internal/recording"
	"github.com/stormglass/stormglass/loadgen/result"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

func one(verb, resource, name string, code int) recording.Request {
	return recording.Request{Verb: verb, Resource: resource, Namespace: "prod", Name: name, Code: code}
}

// replayed runs a recording to its end. It returns the requests that the API server received, and the load's result.
func replayed(t *testing.T, s *stub, tr *recording.Recording, change func(*scenario.Load)) ([]seen, result.Replay) {
	t.Helper()
	r := newLoad(t, s, tr, change)
	after := prepared(t, s, r)
	replayUntil(t, r, "end of the recording", func() bool { return len(after()) == len(r.op.all) && r.watches.live() == 0 })
	return after(), r.Replay()
}

// find returns the request with the given method and path whose body contains the text. Simultaneous requests may arrive in any
// order.
func find(t *testing.T, got []seen, ask, body string) seen {
	t.Helper()
	i := slices.IndexFunc(got, func(s seen) bool { return s.String() == ask && strings.Contains(s.body, body) })
	if i < 0 {
		t.Errorf("%s with %q is missing among %v", ask, body, got)
		return seen{}
	}
	return got[i]
}

func TestEachRequestIsSentAsItsActorToItsRenamedObject(t *testing.T) {
	s := newStub(t)
	get := one("get", "configmaps", "settings", 200)
	list := one("list", "pods", "", 200)
	list.At, list.Actor, list.ResourceVersion, list.LabelSelector, list.Limit = 1, 1, "0", "app=web", 500
	all := one("list", "pods", "", 200)
	all.At, all.Namespace, all.ResourceVersion, all.FieldSelector = 2, "", "4711", "spec.nodeName=n"
	node := one("get", "nodes", "worker-7", 200)
	node.At, node.Namespace = 3, ""
	tr := recordingOf(t, get, list, all, node)
	tr.Actors[0] = recording.Actor{Name: "system:serviceaccount:prod:web", UserAgent: "web/1.0"}
	got, r := replayed(t, s, tr, nil)
	want := []string{
		"GET /api/v1/namespaces/storm-tuesday-1/configmaps/o0",
		"GET /api/v1/namespaces/storm-tuesday-1/pods?limit=500&labelSelector=app%3Dweb&resourceVersion=0",
		"GET /api/v1/pods?fieldSelector=spec.nodeName%3Dn",
		"GET /api/v1/nodes/node-0",
	}
	for _, w := range want {
		find(t, got, w, "")
	}
	if web, b := find(t, got, want[0], ""), find(t, got, want[1], ""); web.user != "stormglass:tenant:tuesday-0:system:serviceaccount:prod:web" || web.agent != "web/1.0" || b.user != "stormglass:tenant:tuesday-0:b" {
		t.Errorf("users %q with %q, %q", web.user, web.agent, b.user)
	}
	if r.VersionsUnset != 1 || r.Sent != 4 || r.Due != 4 || *r.RateError != 0 {
		t.Errorf("%d versions unset, %d of %d sent, rate error %v (%s)", r.VersionsUnset, r.Sent, r.Due, *r.RateError, r.RateErrorOf)
	}
}

func TestWritesHaveABodyOfTheirResource(t *testing.T) {
	s := newStub(t)
	var all []recording.Request
	add := func(verb, resource, name string, code int, change func(*recording.Request)) {
		r := one(verb, resource, name, code)
		r.At = recording.Micros(len(all))
		if change != nil {
			change(&r)
		}
		all = append(all, r)
	}
	deployment := func(r *recording.Request) { r.Group, r.Resource = "apps", "deployments" }
	add("create", "pods", "web-1", 201, func(r *recording.Request) { r.Size = 3000 })
	add("create", "pods", "", 201, nil) // of a generated name
	add("update", "configmaps", "settings", 200, nil)
	add("update", "configmaps", "settings", 409, nil)
	add("patch", "", "web", 200, func(r *recording.Request) {
		deployment(r)
		r.PatchType = "application/strategic-merge-patch+json"
	})
	add("update", "", "web", 200, func(r *recording.Request) {
		deployment(r)
		r.Subresource = "scale"
	})
	add("create", "pods", "web-1", 201, func(r *recording.Request) { r.Subresource = "eviction" })
	add("delete", "configmaps", "old", 200, nil)
	got, r := replayed(t, s, recordingOf(t, all...), nil)
	const ns = "/namespaces/storm-tuesday-1/"
	for _, want := range []struct{ ask, body string }{
		{"POST /api/v1" + ns + "pods", `"name":"o0"`},
		{"POST /api/v1" + ns + "pods", `"name":"n1"`},
		{"PUT /api/v1" + ns + "configmaps/o1", `"payload":"`},
		{"PUT /api/v1" + ns + "configmaps/o1", `"resourceVersion":"1"`},
		{"PATCH /apis/apps/v1" + ns + "deployments/o2", `"annotations"`},
		{"PUT /apis/apps/v1" + ns + "deployments/o2/scale", `"kind":"Scale"`},
		{"POST /api/v1" + ns + "pods/o0/eviction", `"kind":"Eviction"`},
		{"DELETE /api/v1" + ns + "configmaps/o3", ""},
	} {
		find(t, got, want.ask, want.body)
	}
	pod := find(t, got, "POST /api/v1"+ns+"pods", `"name":"o0"`).body
	if n := len(pod); n < 3000 || n > 5000 || !strings.Contains(pod, "no-such-node") {
		t.Errorf("a pod of 3000 bytes has a body of %d: %.300s", n, pod)
	}
	if patch := find(t, got, "PATCH /apis/apps/v1"+ns+"deployments/o2", ""); patch.contentType != "application/strategic-merge-patch+json" {
		t.Errorf("the content type of a strategic merge patch is %s", patch.contentType)
	}
	if r.Conflicts.Recording != r.Conflicts.Replay || r.Conflicts.Recording != 1.0/8 {
		t.Errorf("conflicts: %+v, want 1 of 8 in both", r.Conflicts)
	}
}

// Bodies have the size in the recording, up to the limits of the API server: 1 MiB of data, 256 KiB of annotations.
func TestLargeBodiesAreSentInTheirSizeOrTold(t *testing.T) {
	for _, c := range []struct {
		resource        string
		size, sent, cut int
	}{
		{"configmaps", 400_000, 400_000, 0}, {"configmaps", 900_000, 900_000, 0}, {"configmaps", 1 << 30, 1 << 20, 1 << 20},
		{"pods", 200_000, 200_000, 0}, {"pods", 400_000, 252 << 10, 252 << 10},
	} {
		large := one("create", c.resource, "large", 201)
		large.Size = c.size
		tr := recordingOf(t, large)
		got, r := replayed(t, newStub(t), tr, nil)
		if n := len(got[0].body); n < c.sent || n > c.sent+3000 {
			t.Errorf("%s of %d bytes: the body has %d bytes, want about %d", c.resource, c.size, n, c.sent)
		}
		x := Expect(tr, Options{Name: "tuesday", Seed: 1, Speed: 1, Copies: 1}, map[string]bool{"pods": true, "configmaps": true}, time.Minute)
		if !maps.Equal(x.Cut, r.Cut) || x.Requests[0].Sent != float64(c.sent) {
			t.Errorf("%s of %d bytes: expected %g bytes, cut %v, but the run cut %v", c.resource, c.size, x.Requests[0].Sent, x.Cut, r.Cut)
		}
		var want []string
		if c.cut > 0 {
			want = []string{fmt.Sprintf("replay tuesday: the bodies of 1 requests of the recording are cut to %d bytes, the most that the API server accepts", c.cut)}
		}
		if notes := r.Notes(); !slices.Equal(notes, want) {
			t.Errorf("%s of %d bytes: notes %q, want %q", c.resource, c.size, notes, want)
		}
	}
}

func TestObjectsAreThereAsInTheRecording(t *testing.T) {
	s := newStub(t)
	missing := one("get", "configmaps", "missing", 404)
	missing.At = 1
	created := one("create", "configmaps", "new", 201)
	created.At = 2
	got, r := replayed(t, s, recordingOf(t, one("get", "configmaps", "old", 200), missing, created), nil)
	if r.Made != 1 || len(got) != 3 || r.Conflicts.Replay != 0 {
		t.Errorf("%d objects made, %d requests, conflicts %+v", r.Made, len(got), r.Conflicts)
	}
	if r.NotFound.Recording != 1.0/3 || r.NotFound.Replay != 1.0/3 {
		t.Errorf("404: %+v, want a third in both", r.NotFound)
	}
	if lines := r.Notes(); len(lines) != 0 {
		t.Errorf("differences = %q, want none", lines)
	}
}

// In the recording, an unrecorded client deleted the object, so a later get failed with 404. The result reports the
// difference.
func TestOtherCodesThanInTheRecordingAreTold(t *testing.T) {
	s := newStub(t)
	later := one("get", "configmaps", "old", 404)
	later.At = 1
	_, r := replayed(t, s, recordingOf(t, one("get", "configmaps", "old", 200), later), nil)
	want := []string{"replay tuesday: 0% of the get configmaps requests were answered with 404, compared with 50% in the recording"}
	if got := r.Notes(); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestWatchesAreHeldForTheirTimeAtAnySpeed(t *testing.T) {
	s := newStub(t)
	short := recording.Request{Verb: "watch", Resource: "pods", Code: 200, Took: 200 * ms, ResourceVersion: "55"}
	named := recording.Request{At: ms, Verb: "watch", Resource: "configmaps", Namespace: "prod", FieldSelector: "metadata.name=a", Code: 200, Took: 200 * ms, InitialEvents: true}
	l := newLoad(t, s, recordingOf(t, short, named), func(l *scenario.Load) { l.Speed = 100 })
	after := prepared(t, s, l)
	replayUntil(t, l, "end of the watches", func() bool { return len(after()) == 2 && l.watches.live() == 0 && l.Replay().Watches.Opened == 2 })
	for _, want := range []string{
		"GET /api/v1/pods?watch=true&allowWatchBookmarks=true&resourceVersion=1",
		"GET /api/v1/namespaces/storm-tuesday-1/configmaps?watch=true&allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&fieldSelector=metadata.name%3Do0&timeoutSeconds=",
	} {
		if !slices.ContainsFunc(after(), func(s seen) bool { return strings.HasPrefix(s.String(), want) }) {
			t.Errorf("%s is missing in %v", want, after())
		}
	}
	r := l.Replay()
	if w := r.Watches; w.Due != 2 || w.Codes["200"] != 2 || w.EndedEarly != 0 || w.DueSeconds != 0.4 {
		t.Errorf("%+v", w)
	}
	// Each watch is held from its response until 200 ms after its intended start.
	if held, slow := r.Watches.HeldSeconds, r.Watches.OpenLatency.Max; held < 0.4-2*slow-0.001 {
		t.Errorf("held for %g s of 0.4, opened within %g s", held, slow)
	}
	if r.Sent != 2 || r.Due != 2 {
		t.Errorf("the load sent %d of %d requests", r.Sent, r.Due)
	}
}

// A watch whose length is not in the recording stays open until the end of the load, which then ends it.
func TestWatchesEndWithTheLoad(t *testing.T) {
	s := newStub(t)
	l := newLoad(t, s, recordingOf(t, recording.Request{Verb: "watch", Resource: "pods", Code: 200}), nil)
	prepared(t, s, l)
	replayUntil(t, l, "watch", func() bool { return l.watches.live() == 1 })
	if w := l.Replay().Watches; w.Open != 0 || w.OpenMax != 1 || w.EndedEarly != 0 {
		t.Errorf("%+v", w)
	}
}

func TestCopiesAreUsersWithObjectsOfTheirOwn(t *testing.T) {
	s := newStub(t)
	second := one("get", "configmaps", "settings", 200)
	second.At = 5 * ms
	got, r := replayed(t, s, recordingOf(t, one("get", "configmaps", "settings", 200), second), func(l *scenario.Load) { l.Copies = 3 })
	asked := map[string]int{}
	for _, g := range got {
		asked[g.user+" "+g.path]++
	}
	for c := range 3 {
		key := fmt.Sprintf("stormglass:tenant:tuesday-%d:a /api/v1/namespaces/storm-tuesday-%d/configmaps/o0", c, c+1)
		if asked[key] != 2 {
			t.Errorf("%d requests of %s, want 2: %v", asked[key], key, asked)
		}
	}
	if r.Made != 3 || r.Actors != 3 || r.NotFound.Replay != 0 {
		t.Errorf("%d objects made for %d users, 404: %+v", r.Made, r.Actors, r.NotFound)
	}
}

func TestNextPagesFollowTheAnswerBefore(t *testing.T) {
	s := newStub(t)
	first, next := one("list", "pods", "", 200), one("list", "pods", "", 200)
	first.Limit, next.Limit, next.Paged, next.At = 10, 10, true, 100*ms
	got, r := replayed(t, s, recordingOf(t, first, next), nil)
	if !strings.Contains(got[1].path, "&continue=token") && r.PagesRestarted != 1 { // the response took over 100 ms
		t.Errorf("the request for the second page is %s", got[1])
	}
}

// A write of a cluster-scoped object goes to a ConfigMap.
func TestClusterScopedWritesGoToConfigMaps(t *testing.T) {
	s := newStub(t)
	patch := recording.Request{Verb: "patch", Resource: "nodes", Name: "worker-7", Code: 200}
	got, r := replayed(t, s, recordingOf(t, patch), nil)
	if got[0].String() != "PATCH /api/v1/namespaces/storm-tuesday-1/configmaps/c0-o0" || r.Mapped["nodes"] != 1 || r.Made != 1 {
		t.Errorf("%s, mapped %v, %d made", got[0], r.Mapped, r.Made)
	}
}

// Writes of a custom resource that refuses an empty spec go to a ConfigMap, too.
func TestWritesOfUnknownShapeGoToConfigMaps(t *testing.T) {
	s := newStub(t)
	update := recording.Request{Verb: "update", Group: "example.com", Resource: "widgets", Namespace: "prod", Name: "w", Code: 200}
	got, r := replayed(t, s, recordingOf(t, update), nil)
	if got[0].String() != "PUT /api/v1/namespaces/storm-tuesday-1/configmaps/o0" || r.Mapped["widgets.example.com"] != 1 || len(r.Refused) != 1 {
		t.Errorf("%s, mapped %v, refused %q", got[0], r.Mapped, r.Refused)
	}
}

func TestResourcesThatTheAPIServerLacks(t *testing.T) {
	s := newStub(t)
	alien := recording.Request{Verb: "list", Group: "nosuch.io", Resource: "gadgets", Code: 200}
	tr := recordingOf(t, alien, one("get", "configmaps", "a", 200), one("get", "configmaps", "a", 200), one("get", "configmaps", "a", 200))
	err := newLoad(t, s, tr, nil).Prepare(t.Context())
	const want = "the API server does not have these resources of the recording: gadgets.nosuch.io (1 requests) (to leave out their requests, which are 25% of the recording, set onMissing: drop)"
	if err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
	got, r := replayed(t, s, tr, func(l *scenario.Load) { l.OnMissing = "drop" })
	if len(got) != 3 || r.LeftOut[reasonLacking] != 1 || r.Scheduled != 3 {
		t.Errorf("%d requests, left out %v, %d scheduled", len(got), r.LeftOut, r.Scheduled)
	}
}

func TestStreamsAndBindingsAreLeftOut(t *testing.T) {
	s := newStub(t)
	logs := one("get", "pods", "web-1", 200)
	logs.Subresource = "log"
	bind := one("create", "pods", "web-1", 201)
	bind.Subresource = "binding"
	_, r := replayed(t, s, recordingOf(t, logs, bind, one("get", "configmaps", "a", 200)), nil)
	if r.LeftOut[reasonStream] != 1 || r.LeftOut[reasonBinding] != 1 || r.Sent != 1 {
		t.Errorf("left out %v, %d sent", r.LeftOut, r.Sent)
	}
	err := newLoad(t, s, recordingOf(t, logs), nil).Prepare(t.Context())
	if err == nil || !strings.Contains(err.Error(), "no request of the recording can be replayed on this cluster: replay ") {
		t.Errorf("of a recording of streams alone: %v", err)
	}
}

// Leases are updated with their version, which no update may leave out.
func TestUpdatesOfLeasesNameTheirVersion(t *testing.T) {
	s := newStub(t)
	first, second := renew(0), renew(500*ms)
	got, _ := replayed(t, s, recordingOf(t, first, second), nil)
	for i, g := range got {
		if !strings.Contains(g.body, `"resourceVersion":"1`) {
			t.Errorf("update %d names no version: %s", i, g.body)
		}
	}
	if got[0].body == got[1].body {
		t.Error("both updates are the same, so the second would write nothing")
	}
}

// If the load ends before the recording, only the requests that were due by then are compared.
func TestReplayThatEndsBeforeItsRecordingIsComparedWithWhatWasDue(t *testing.T) {
	s := newStub(t)
	hour := one("get", "configmaps", "a", 200)
	hour.At = recording.Micros(time.Hour / time.Microsecond)
	l := newLoad(t, s, recordingOf(t, one("get", "configmaps", "a", 200), hour), nil)
	after := prepared(t, s, l)
	replayUntil(t, l, "first request", func() bool { return len(after()) == 1 })
	if r := l.Replay(); r.Scheduled != 2 || r.Due != 1 || r.Sent != 1 || *r.RateError != 0 || r.DispersionError != nil {
		t.Errorf("%+v", r)
	}
}
