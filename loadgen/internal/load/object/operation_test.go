package object

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stormglass/stormglass/loadgen/internal/load"
	"github.com/stormglass/stormglass/loadgen/internal/load/request"
	"github.com/stormglass/stormglass/loadgen/internal/load/watch"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

var _ watch.Objects = (*Set)(nil)

const configMaps = "/api/v1/namespaces/storm/configmaps"

// A list requests all pages up to the last. A malformed page ends it.
func TestPages(t *testing.T) {
	op := prepared(t, newStub(t, nil), newLoad(func(l *scenario.Load) {
		l.Verb, l.Limit, l.AllPages, l.ResourceVersion = "list", 2, true, "0"
	}))
	first := configMaps + "?limit=2&labelSelector=stormglass.dev%2Fload%3Dload"
	got := ask(t, op, 0, 200, `{"metadata":{"continue":"a/b=="},"items":[]}`, `{"items":[],"metadata":{"continue":"c\u0026"}}`, `{"metadata":{}}`)
	want := []string{first + "&resourceVersion=0", first + "&continue=a%2Fb%3D%3D", first + "&continue=c%26"}
	if !slices.Equal(got, want) {
		t.Errorf("requests:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	for name, page := range map[string]string{"half a page": `{"metadata":{"continue":"a"}`, "no page": ``} {
		if got := ask(t, op, 1, 200, page); len(got) != 1 {
			t.Errorf("%s is followed by %v", name, got[1:])
		}
	}
	if got := ask(t, op, 2, 410, `{"metadata":{"continue":"a"}}`); len(got) != 1 {
		t.Errorf("a 410 is followed by %v", got[1:])
	}
}

// The exact version of lists is renewed when the server no longer has it.
func TestExactVersionIsRenewed(t *testing.T) {
	var version atomic.Int64
	s := newStub(t, func(w http.ResponseWriter, r *http.Request, _ []byte) bool {
		if r.URL.Query().Get("limit") != "1" {
			return false
		}
		text, _ := json.Marshal(version.Add(1))
		_, _ = w.Write([]byte(`{"metadata":{"resourceVersion":"` + string(text) + `"}}`))
		return true
	})
	op := prepared(t, s, newLoad(func(l *scenario.Load) { l.Verb, l.ResourceVersion = "list", "exact" }))
	runBackground(t, op)
	named := func(n int64) string {
		_, query, _ := strings.Cut(ask(t, op, n, 410, ``)[0], "resourceVersion=")
		return query
	}
	if got := named(0); got != "1&resourceVersionMatch=Exact" {
		t.Errorf("the first list names version %s", got)
	}
	await(t, "newer version", func() bool {
		newer, exact := strings.CutSuffix(named(1), "&resourceVersionMatch=Exact")
		return exact && newer != "1" // each of these 410s may renew it again
	})
}

// The seed determines operations and tenants: the same seed always gives the same mix.
func TestMixIsDrawnBySeedAndNumber(t *testing.T) {
	l := newLoad(func(l *scenario.Load) {
		l.Objects = 50
		l.Mix = []scenario.Operation{{Verb: "get", Weight: 7}, {Verb: "list", Weight: 2}, {Verb: "list", Limit: 3, Weight: 1}, {Verb: "patch", Resource: "leases.coordination.k8s.io"}}
		l.Tenants = []scenario.Tenant{{Name: "a", Share: 3}, {Name: "b", Share: 1}}
	})
	s := newStub(t, nil)
	a, b := prepared(t, s, l), prepared(t, s, l)
	if want := 2 * 4; len(a.Kinds()) != want {
		t.Errorf("kinds %v, want %d: each operation's, for each tenant", a.Kinds(), want)
	}
	counts := map[request.Kind]int{}
	paths := map[string]bool{}
	const n = 11_000
	for i := range int64(n) {
		var ra, rb request.Request
		if i%3 != 0 { // b could not send some
			if !b.Next(i, &rb) {
				t.Fatal("unsent")
			}
		}
		a.Next(i, &ra)
		if i%3 != 0 && (string(ra.Path) != string(rb.Path) || string(ra.Body) != string(rb.Body)) {
			t.Fatalf("arrival %d requests %s and %s", i, ra.Path, rb.Path)
		}
		counts[a.Kinds()[a.KindOf(i)]]++
		paths[string(ra.Path)] = true
	}
	for kind, want := range map[request.Kind]int{
		{Verb: "get", Resource: "configmaps", Tenant: "a"}: 7000 * 3 / 4, {Verb: "list", Resource: "configmaps", Tenant: "b"}: 2000 / 4,
		{Verb: "list", Resource: "configmaps", Variant: "limit=3", Tenant: "a"}: 1000 * 3 / 4,
		{Verb: "patch", Resource: "leases.coordination.k8s.io", Tenant: "a"}:    750,
	} {
		if got := counts[kind]; got < want*9/10 || got > want*11/10 {
			t.Errorf("%v: %d of %d, want about %d", kind, got, n, want)
		}
	}
	if len(paths) != 50+2+50 {
		t.Errorf("%d paths, want every object and both lists", len(paths))
	}
}

// A deleted object is recreated, and not deleted again before that.
func TestDeletedObjectsAreMadeAgain(t *testing.T) {
	s := newStub(t, nil)
	op := prepared(t, s, newLoad(func(l *scenario.Load) { l.Verb = "delete" }))
	deleted := map[string]bool{}
	for n := range int64(3) {
		deleted[ask(t, op, n, 200, `{}`)[0]] = true
	}
	if len(deleted) != 3 {
		t.Errorf("deleted %v", deleted)
	}
	if got := ask(t, op, 3, 200, `{}`); got != nil {
		t.Errorf("%v is deleted again before it is recreated", got)
	}
	made := s.count("POST " + configMaps)
	runBackground(t, op)
	await(t, "objects again", func() bool { return s.count("POST "+configMaps) == made+3 })
	await(t, "delete", func() bool { return ask(t, op, 4, 429, `{}`) != nil })
	if ask(t, op, 5, 429, `{}`) == nil { // an object whose deletion was refused still exists
		t.Error("the load does not use an object whose deletion was rejected")
	}
}

// Updates that must name a version name the newest one, and no two updates name the same.
func TestUpdatesNameVersions(t *testing.T) {
	s := newStub(t, func(w http.ResponseWriter, r *http.Request, body []byte) bool {
		if r.Method == http.MethodPut && !strings.Contains(string(body), `"resourceVersion"`) {
			refuse(w, 422, "metadata.resourceVersion: must be specified for an update")
			return true
		}
		return false
	})
	op := prepared(t, s, newLoad(func(l *scenario.Load) { l.Verb, l.Resource, l.Objects = "update", "leases.coordination.k8s.io", 2 }))
	body := func(r *request.Request) (o metav1.PartialObjectMetadata) {
		must(t, json.Unmarshal(r.Body, &o))
		return o
	}
	var a, b, c request.Request
	if !op.Next(0, &a) || !op.Next(1, &b) || op.Next(2, &c) {
		t.Fatal("with two objects, two updates are not possible at a time")
	}
	if body(&a).Name == body(&b).Name || body(&a).ResourceVersion != "5" {
		t.Errorf("updates of %+v and %+v", body(&a), body(&b))
	}
	must(t, op.Data(&a, 200, []byte(`{"metadata":{"resourceVersion":"9"}}`)))
	op.Done(&a, 200, a0)
	if !op.Next(3, &c) || body(&c).ResourceVersion != "9" {
		t.Errorf("the next update is of %+v, want version 9", body(&c))
	}
	op.Done(&b, load.Outcome(409), a0)
	if op.Next(4, &a) {
		t.Error("the load updates an object whose version is unknown")
	}
	runBackground(t, op)
	await(t, "update", func() bool { return op.Next(5, &a) })
}

// The names of existing objects are read again while the load runs.
func TestNamesAreRenewed(t *testing.T) {
	var there atomic.Bool
	s := newStub(t, func(w http.ResponseWriter, r *http.Request, _ []byte) bool {
		if r.URL.Path != "/api/v1/nodes" {
			return false
		}
		text := `{"items":[]}`
		if there.Load() {
			text = `{"items":[{"metadata":{"name":"node-1"}}]}`
		}
		_, _ = w.Write([]byte(text))
		return true
	})
	op := prepared(t, s, newLoad(func(l *scenario.Load) { l.Verb, l.Resource, l.ResourceVersion = "get", "nodes", "0" }))
	if got := ask(t, op, 0, 404, ``)[0]; got != "/api/v1/nodes/stormglass-no-such-object?resourceVersion=0" {
		t.Errorf("path = %s, want the path of the missing object", got)
	}
	there.Store(true)
	runBackground(t, op)
	await(t, "node", func() bool { return ask(t, op, 1, 404, ``)[0] == "/api/v1/nodes/node-1?resourceVersion=0" })
}
