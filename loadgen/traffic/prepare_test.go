package traffic

import (
	"context"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/stormglass/stormglass/loadgen/scenario"
)

// Resources other than configmaps are found by discovery, and names for get by
// a list.
func TestOtherResources(t *testing.T) {
	t.Parallel()
	deployments := "/apis/apps/v1/namespaces/storm/deployments"
	s := newStub(t, nil)
	s.intercept = func(w http.ResponseWriter, r *http.Request) bool {
		switch r.URL.Path {
		case "/apis/apps":
			answer(w, 200, map[string]any{"preferredVersion": map[string]string{"groupVersion": "apps/v1"}})
		case "/apis/apps/v1":
			answer(w, 200, map[string]any{"resources": []map[string]any{{"name": "deployments", "namespaced": true}}})
		case deployments:
			answer(w, 200, map[string]any{"items": []map[string]any{{"metadata": map[string]string{"name": "web"}}}})
		case deployments + "/web":
			answer(w, 200, map[string]any{})
		default:
			return false
		}
		return true
	}
	for _, verb := range []string{"get", "list"} {
		got := request(t, s.target(), 20, func(l *scenario.Load) { l.Verb, l.Resource = verb, "deployments.apps" })
		if got.Outcomes["200"] != got.Sent {
			t.Errorf("%s: outcomes %v, want all 200", verb, got.Outcomes)
		}
	}
	for resource, hint := range map[string]string{"widgets.example.com": "api-resources", "daemonsets.apps": "api-resources"} {
		r, err := NewRequests(s.target(), load("requests", func(l *scenario.Load) { l.Verb, l.Resource = "list", resource }))
		must(t, err)
		if err := r.Prepare(context.Background()); err == nil || !strings.Contains(err.Error(), resource) || !strings.Contains(err.Error(), hint) {
			t.Errorf("prepare a list of %s: %v, want its name and a hint", resource, err)
		}
		r.client.close()
	}
}

func TestPrepareNamesVerbObjectAndHint(t *testing.T) {
	t.Parallel()
	s := newStub(t, func(s *stub) {
		s.intercept = func(w http.ResponseWriter, _ *http.Request) bool {
			answer(w, 403, status(403, "configmaps is forbidden"))
			return true
		}
	})
	r, err := NewRequests(s.target(), load("requests", func(l *scenario.Load) { l.Verb = "get" }))
	must(t, err)
	defer r.client.close()
	err = r.Prepare(context.Background())
	for _, part := range []string{"create", `configmap "requests-`, "403", "forbidden", "kubectl auth can-i"} {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("error %q does not say %q", err, part)
		}
	}
}

func TestPrepareTakesOverObjectsOfARunBefore(t *testing.T) {
	t.Parallel()
	s := newStub(t, nil)
	for range 2 {
		r, err := NewRequests(s.target(), load("requests", func(l *scenario.Load) { l.Verb = "get" }))
		must(t, err)
		must(t, r.Prepare(context.Background()))
		r.client.close()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if names := slices.Sorted(maps.Keys(s.objects)); !slices.Equal(names, []string{"requests-0", "requests-1", "requests-2"}) {
		t.Errorf("objects %v", names)
	}
}

func TestWhatCannotBeIsRefused(t *testing.T) {
	good := Target{Config: &rest.Config{Host: "https://stub"}, Namespace: "storm"}
	for hint, make := range map[string]func() error{
		"patch works on configmaps only": func() error {
			_, err := NewRequests(good, load("requests", func(l *scenario.Load) { l.Verb, l.Resource = "patch", "pods" }))
			return err
		},
		"there are get, list": func() error {
			_, err := NewRequests(good, load("requests", func(l *scenario.Load) { l.Verb = "apply" }))
			return err
		},
		"1000000/s": func() error {
			_, err := NewRequests(good, load("requests", func(l *scenario.Load) { l.Verb, l.Rate = "get", 1e9 }))
			return err
		},
		"there are no watches": func() error {
			_, err := NewChanges(good, load("changes", nil), nil)
			return err
		},
		"no namespace": func() error {
			_, err := NewWatches(Target{Config: good.Config}, load("watches", func(l *scenario.Load) { l.Count = 1 }))
			return err
		},
		"configmaps only": func() error {
			w, err := NewWatches(good, load("watches", func(l *scenario.Load) { l.Count, l.Resource = 1, "pods" }))
			if err != nil {
				return err
			}
			_, err = NewChanges(good, load("changes", nil), w)
			return err
		},
	} {
		if err := make(); err == nil || !strings.Contains(err.Error(), hint) {
			t.Errorf("error %v, want one with %q", err, hint)
		}
	}
}

// A patch is the JSON it should be.
func TestMergePatchIsJSON(t *testing.T) {
	var p stubObject
	must(t, json.NewDecoder(strings.NewReader(string(mergePatch("id:5", newPayload(10, 1).turn(23))))).Decode(&p))
	if p.Metadata.Annotations[StampAnnotation] != "id:5" || len(p.Data["payload"]) != 10 {
		t.Errorf("%+v", p)
	}
	must(t, json.NewDecoder(io.LimitReader(strings.NewReader(string(mergePatch("", nil))), 100)).Decode(&p))
}
