package run

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/stormglass/stormglass/loadgen/internal/cluster"
	"github.com/stormglass/stormglass/loadgen/internal/objects"
)

// secretsAPI is the small part of an API server that actions on Secrets need. It serves no other resource.
type secretsAPI struct {
	mu      sync.Mutex
	there   []string
	deleted []string
	// onDelete is called before secretsAPI responds to a delete request; nil: no call.
	onDelete func()
}

func (s *secretsAPI) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	const secrets = "/api/v1/namespaces/ns/secrets"
	switch {
	case r.URL.Path == "/api":
		fmt.Fprint(w, `{"kind":"APIVersions","versions":["v1"]}`)
	case r.URL.Path == "/apis":
		fmt.Fprint(w, `{"kind":"APIGroupList","apiVersion":"v1","groups":[]}`)
	case r.URL.Path == "/api/v1":
		fmt.Fprint(w, `{"kind":"APIResourceList","groupVersion":"v1","resources":[{"name":"secrets","namespaced":true,"kind":"Secret","verbs":["list","delete"]}]}`)
	case r.URL.Path == secrets:
		var items []string
		for _, name := range s.there {
			items = append(items, fmt.Sprintf(`{"metadata":{"name":%q,"namespace":"ns"}}`, name))
		}
		fmt.Fprintf(w, `{"kind":"PartialObjectMetadataList","apiVersion":"meta.k8s.io/v1","items":[%s]}`, strings.Join(items, ","))
	case r.Method == http.MethodDelete && strings.HasPrefix(r.URL.Path, secrets+"/"):
		if s.onDelete != nil {
			s.onDelete()
		}
		s.deleted = append(s.deleted, path.Base(r.URL.Path))
		s.there = slices.DeleteFunc(s.there, func(name string) bool { return name == path.Base(r.URL.Path) })
		fmt.Fprint(w, `{"kind":"Status","apiVersion":"v1","status":"Success"}`)
	default:
		w.WriteHeader(http.StatusNotFound)
	}
}

// tornDown returns a run after its phases, with a teardown, and the API server with its Secrets.
func tornDown(t *testing.T, body string, secrets ...string) (*run, *secretsAPI) {
	t.Helper()
	api := &secretsAPI{there: secrets}
	server := httptest.NewServer(api)
	t.Cleanup(server.Close)
	s := parse(t, `objects: [{templates: [{object: {apiVersion: v1, kind: Secret, metadata: {name: a}}}]}]
phases: [{name: p, for: 1s}]
`+body)
	r := underway(t, s)
	var err error
	if r.phases.objects, err = objects.New(&rest.Config{Host: server.URL}, objects.Options{
		Namespaces: []string{"ns"}, Labels: r.target.Labels, OwnLabel: cluster.RunLabel, Seed: 1,
	}); err != nil {
		t.Fatal(err)
	}
	return r, api
}

const brokenTeardown = `teardown:
  - {kind: delete, target: {resource: databases.example.com}}
  - {kind: delete, target: {resource: secrets, names: [a]}}
  - {kind: delete, target: {resource: secrets, atLeast: 3}}
  - {kind: delete, target: {resource: secrets}}
`

// If an action of the teardown fails, the run performs the next ones, and the error counts as a failure of the
// environment.
func TestTeardownGoesOnPastFailures(t *testing.T) {
	r, api := tornDown(t, brokenTeardown, "a", "b")
	r.tearDown()
	if want := []string{"a", "b"}; !slices.Equal(api.deleted, want) {
		t.Errorf("deleted %q, want %q", api.deleted, want)
	}
	want := "teardown[0]: the cluster has no resource \"databases.example.com\" (`kubectl api-resources` lists them); " +
		"teardown[2]: the target selects only 1 secrets, but atLeast is 3"
	if r.info.Failure != want || len(r.info.Warnings) != 0 {
		t.Errorf("Failure %q\nwant %q\nWarnings %q", r.info.Failure, want, r.info.Warnings)
	}
}

// A teardown does not change the reason why a run ended.
func TestTeardownOfARunThatEndedEarly(t *testing.T) {
	for name, ended := range map[string]func(*run){
		"interrupted": func(r *run) { r.info.Interrupted = true },
		"aborted":     func(r *run) { r.info.Aborted = "gate p99" },
		"failed":      func(r *run) { r.info.Failure = "phase p: no" },
	} {
		r, api := tornDown(t, brokenTeardown, "a", "b")
		ended(r)
		was := r.info.Failure
		r.tearDown()
		if len(api.deleted) != 2 || r.info.Failure != was || len(r.info.Warnings) != 1 || !strings.Contains(r.info.Warnings[0], "teardown[0]: ") {
			t.Errorf("%s: deleted %q, Failure %q, Warnings %q", name, api.deleted, r.info.Failure, r.info.Warnings)
		}
	}
}

func TestNoTeardownOfALostTarget(t *testing.T) {
	r, api := tornDown(t, brokenTeardown, "a", "b")
	r.target.lose(fmt.Errorf("the plane has ended"))
	r.info.Failure = "the plane has ended"
	r.tearDown()
	if len(api.deleted) != 0 || len(r.info.Warnings) != 1 || r.info.Warnings[0] != "the teardown was skipped, because the control plane or cluster can no longer be reached" {
		t.Errorf("deleted %q, warnings %q", api.deleted, r.info.Warnings)
	}
}

// An action whose target selects no objects is not a failure. The run counts such actions.
func TestActionsThatSelectNothingAreCounted(t *testing.T) {
	r, _ := tornDown(t, "teardown:\n  - {kind: delete, target: {resource: secrets, labelSelector: app=web}}\n  - {kind: delete, collection: true, target: {resource: secrets}}\n")
	r.tearDown()
	r.tearDown()
	want := []string{
		"teardown[0]: delete secrets selected no object, 2 times (set target.atLeast: 1 to make this an error)",
		"teardown[1]: delete secrets selected no object, 2 times (set target.atLeast: 1 to make this an error)",
	}
	if got := r.phases.idles(); !slices.Equal(got, want) || r.info.Failure != "" {
		t.Errorf("idles() = %q\nwant %q\nFailure %q", got, want, r.info.Failure)
	}
}

// During the teardown and while the run ends, the display no longer shows the last phase.
func TestTeardownIsShown(t *testing.T) {
	r, api := tornDown(t, "teardown:\n  - {kind: delete, target: {resource: secrets, names: [a]}}\n", "a")
	last := &r.o.Scenario.Phases[0]
	r.display.beginPhase(last, time.Now())
	if s := r.display.snapshot(time.Now()); s.Phase != last.Name || s.Length != last.For.D() {
		t.Errorf("snapshot in the last phase: %+v", s)
	}
	var during Snapshot
	api.onDelete = func() { during = r.display.snapshot(time.Now()) }
	r.tearDown()
	if during.Phase != "teardown" || during.Length != 0 || during.Until != "" || during.Elapsed < 0 {
		t.Errorf("snapshot in the teardown: %+v", during)
	}
	r.display.beginStage(Ending)
	if s := r.display.snapshot(time.Now()); s.Phase != "ending" {
		t.Errorf("snapshot after the teardown: %+v", s)
	}
}

// shown keeps the last Snapshot that the run showed.
type shown struct{ last Snapshot }

func (*shown) Step(string)       {}
func (s *shown) Live(n Snapshot) { s.last = n }

// The last state that the run shows includes the failure. It stays visible while the run removes its objects.
func TestFailureIsShown(t *testing.T) {
	r, _ := tornDown(t, "")
	var seen shown
	r.display.progress = &seen
	r.display.beginPhase(&r.o.Scenario.Phases[0], time.Now())
	r.display.beginStage(Ending)
	r.display.fail("cluster x is gone")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := r.display.run(ctx); err != nil {
		t.Fatal(err)
	}
	if s := seen.last; s.Phase != Ending || s.Failure != "cluster x is gone" || s.Nodes != 0 || s.WatchesOpen != 0 {
		t.Errorf("%+v", s)
	}
	if slices.ContainsFunc(seen.last.Phases, func(p PhaseState) bool { return p.Now }) {
		t.Errorf("a phase is shown as in progress after the failure: %+v", seen.last.Phases)
	}
}
