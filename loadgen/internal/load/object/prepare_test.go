package object

import (
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/stormglass/stormglass/loadgen/internal/load"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

var a0 time.Time

// Preparation is retried while the server is overloaded, and applies objects that exist already.
func TestPreparationsAreTriedAgain(t *testing.T) {
	var refused atomic.Int64
	s := newStub(t, func(w http.ResponseWriter, r *http.Request, _ []byte) bool {
		if r.Method != http.MethodPost {
			return false
		}
		switch refused.Add(1) {
		case 1:
			refuse(w, 429, "too many requests")
		case 2:
			refuse(w, 503, "etcdserver: leader changed")
		default:
			refuse(w, 409, "already exists")
		}
		return true
	})
	prepared(t, s, newLoad(func(l *scenario.Load) { l.Verb = "get" }))
	if posts, applied := s.count("POST"), s.count("PATCH"); posts != 5 || applied != 3 {
		t.Errorf("%d creates and %d applies of 3 objects that were there, want 5 and 3", posts, applied)
	}
}

func TestErrorsNameVerbObjectAndHint(t *testing.T) {
	for verb, want := range map[string][]string{
		"get":  {"create", `configmaps "load-`, "403", "is forbidden", "kubectl auth can-i"},
		"list": {"create", `configmaps "load-`},
	} {
		s := newStub(t, func(w http.ResponseWriter, r *http.Request, _ []byte) bool {
			if r.Method == http.MethodPost {
				refuse(w, 403, "configmaps is forbidden")
			}
			return r.Method == http.MethodPost
		})
		op, err := NewOperation(s.target(), newLoad(func(l *scenario.Load) { l.Verb = verb }))
		must(t, err)
		err = op.Prepare(t.Context())
		for _, part := range want {
			if err == nil || !strings.Contains(err.Error(), part) {
				t.Errorf("error %q does not contain %q", err, part)
			}
		}
	}
}

func TestImpossibleOperationIsRefused(t *testing.T) {
	good := load.Target{Config: &rest.Config{Host: "https://stub"}, Namespace: "storm"}
	for hint, c := range map[string]struct {
		to     load.Target
		change func(*scenario.Load)
	}{
		"no client configuration":   {load.Target{}, func(l *scenario.Load) { l.Verb = "get" }},
		"no namespace":              {load.Target{Config: good.Config}, func(l *scenario.Load) { l.Verb = "get" }},
		"load load: no namespace":   {load.Target{Config: good.Config}, func(l *scenario.Load) { l.Verb = "create" }},
		"give the load an object":   {good, func(l *scenario.Load) { l.Verb, l.Resource = "patch", "deployments.apps" }},
		"there are get, list":       {good, func(l *scenario.Load) { l.Verb = "watch" }},
		"objects is 0":              {good, func(l *scenario.Load) { l.Verb, l.Objects = "update", 0 }},
		"stormglass speaks HTTP/2 ": {load.Target{Config: &rest.Config{Host: "http://stub"}}, func(l *scenario.Load) { l.Verb = "get" }},
	} {
		if _, err := NewOperation(c.to, newLoad(c.change)); err == nil || !strings.Contains(err.Error(), hint) {
			t.Errorf("error %v, want one with %q", err, hint)
		}
	}
}

// Watches watch one collection that contains all objects of the load.
func TestCollectionOfWatches(t *testing.T) {
	s := newStub(t, nil)
	for want, c := range map[string]struct {
		own    int
		change func(*scenario.Load)
	}{
		configMaps:           {3, func(*scenario.Load) {}},
		"/api/v1/configmaps": {3, func(l *scenario.Load) { l.Namespaces = 2 }},
		"/api/v1/pods":       {0, func(l *scenario.Load) { l.Resource, l.Scope = "pods", "cluster" }},
		"/apis/apps/v1/namespaces/storm/deployments": {0, func(l *scenario.Load) { l.Resource = "deployments.apps" }},
	} {
		set, err := NewSet(s.target(), newLoad(func(l *scenario.Load) {
			l.Kind = "watches"
			c.change(l)
		}))
		must(t, err)
		must(t, set.Prepare(t.Context()))
		if set.Collection() != want || set.Len() != c.own {
			t.Errorf("%s with %d own objects, want %s with %d", set.Collection(), set.Len(), want, c.own)
		}
	}
}

func TestNeeds(t *testing.T) {
	l := newLoad(func(l *scenario.Load) {
		l.Namespaces = 2
		l.Tenants = []scenario.Tenant{{Name: "blue", Groups: []string{"team"}}}
		l.Mix = []scenario.Operation{
			{Verb: "get", Resource: "nodes"}, {Verb: "apply", Resource: scenario.WidgetResource}, {Verb: "list", Scope: "cluster"},
		}
	})
	var got []string
	for _, n := range Needs(l) {
		text := textOf(n)
		if n.Cluster {
			text = "cluster: " + text
		}
		got = append(got, text)
	}
	want := `get nodes; list nodes; patch widgets.load.stormglass.dev; create widgets.load.stormglass.dev; cluster: create namespaces; ` +
		`cluster: create customresourcedefinitions.apiextensions.k8s.io; ` +
		`cluster: get customresourcedefinitions.apiextensions.k8s.io/widgets.load.stormglass.dev; ` +
		`cluster: list configmaps; cluster: impersonate users/stormglass:tenant:blue; cluster: impersonate groups/stormglass:tenants; cluster: impersonate groups/team`
	if text := strings.Join(got, "; "); text != want {
		t.Errorf("\n got %s\nwant %s", text, want)
	}
}

// textOf returns a need as text, such as "create configmaps" or "get
// customresourcedefinitions.apiextensions.k8s.io/NAME".
func textOf(n Need) string {
	s := n.Verb + " " + n.Resource
	if n.Group != "" {
		s += "." + n.Group
	}
	if n.Name != "" {
		s += "/" + n.Name
	}
	return s
}
