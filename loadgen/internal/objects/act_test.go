package objects

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"path"
	"slices"
	"sync"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/stormglass/stormglass/loadgen/result"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

// Act retries a request while the control plane is briefly unavailable, but not an eviction that a PodDisruptionBudget
// refused.
func TestEvictionsOutlastAnElection(t *testing.T) {
	var mu sync.Mutex
	asked := map[string]int{}
	reply := func(w http.ResponseWriter, code int, body any) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(code)
		_ = json.NewEncoder(w).Encode(body)
	}
	status := func(w http.ResponseWriter, code int32) {
		reply(w, int(code), &metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: "Failure", Code: code, Message: "not now"})
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		asked[r.URL.Path]++
		first := asked[r.URL.Path] == 1
		mu.Unlock()
		switch r.URL.Path {
		case "/api":
			if first {
				status(w, http.StatusServiceUnavailable)
				return
			}
			reply(w, http.StatusOK, &metav1.APIVersions{TypeMeta: metav1.TypeMeta{Kind: "APIVersions"}, Versions: []string{"v1"}})
		case "/apis":
			reply(w, http.StatusOK, &metav1.APIGroupList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupList", APIVersion: "v1"}})
		case "/api/v1":
			reply(w, http.StatusOK, &metav1.APIResourceList{TypeMeta: metav1.TypeMeta{Kind: "APIResourceList"}, GroupVersion: "v1", APIResources: []metav1.APIResource{{Name: "pods", Kind: "Pod", Namespaced: true}}})
		case "/api/v1/namespaces/ns/pods":
			pod := func(name string) metav1.PartialObjectMetadata {
				return metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "ns"}}
			}
			reply(w, http.StatusOK, &metav1.PartialObjectMetadataList{
				TypeMeta: metav1.TypeMeta{Kind: "PartialObjectMetadataList", APIVersion: "meta.k8s.io/v1"}, Items: []metav1.PartialObjectMetadata{pod("held"), pod("web")},
			})
		case "/api/v1/namespaces/ns/pods/held/eviction":
			status(w, http.StatusTooManyRequests)
		case "/api/v1/namespaces/ns/pods/web/eviction":
			if first {
				status(w, http.StatusInternalServerError)
				return
			}
			reply(w, http.StatusCreated, &metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: "Success"})
		default:
			status(w, http.StatusNotFound)
		}
	}))
	defer server.Close()
	a, err := New(&rest.Config{Host: server.URL}, Options{Namespaces: []string{"ns"}, Retry: func(_ context.Context, ask func() error) (err error) {
		for range 3 {
			if err = ask(); err == nil || apierrors.IsNotFound(err) {
				break
			}
		}
		return err
	}})
	if err != nil {
		t.Fatal(err)
	}
	meter := NewMeter()
	done, err := a.Act(WithMeter(t.Context(), meter), scenario.Action{Kind: "evict", Target: scenario.Selection{Resource: "pods"}})
	if want := (Done{Selected: 2, Objects: 1, Refused: 1}); err != nil || done != want {
		t.Errorf("%+v, %v, want %+v", done, err, want)
	}
	var measured result.Action
	if meter.AddTo(&measured); measured.Done != 1 || measured.Refused != 1 {
		t.Errorf("the meter counted %d done and %d refused, want 1 and 1", measured.Done, measured.Refused)
	}
	if n := asked["/api/v1/namespaces/ns/pods/held/eviction"]; n != 1 {
		t.Errorf("%d requests for the refused eviction, want 1", n)
	}
}

// A share of the oldest objects does not depend on the order in the list.
func TestOldestShare(t *testing.T) {
	reply := func(w http.ResponseWriter, body any) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(body)
	}
	var mu sync.Mutex
	var deleted []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Method == http.MethodDelete:
			mu.Lock()
			deleted = append(deleted, path.Base(r.URL.Path))
			mu.Unlock()
			reply(w, &metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: "Success"})
		case r.URL.Path == "/api":
			reply(w, &metav1.APIVersions{TypeMeta: metav1.TypeMeta{Kind: "APIVersions"}, Versions: []string{"v1"}})
		case r.URL.Path == "/apis":
			reply(w, &metav1.APIGroupList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupList", APIVersion: "v1"}})
		case r.URL.Path == "/api/v1":
			reply(w, &metav1.APIResourceList{TypeMeta: metav1.TypeMeta{Kind: "APIResourceList"}, GroupVersion: "v1", APIResources: []metav1.APIResource{{Name: "pods", Kind: "Pod", Namespaced: true}}})
		default:
			list := &metav1.PartialObjectMetadataList{TypeMeta: metav1.TypeMeta{Kind: "PartialObjectMetadataList", APIVersion: "meta.k8s.io/v1"}}
			for i, name := range []string{"new", "oldest", "newest", "old"} {
				age := []int64{300, 100, 400, 200}[i]
				list.Items = append(list.Items, metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "ns", CreationTimestamp: metav1.Unix(age, 0)}})
			}
			reply(w, list)
		}
	}))
	defer server.Close()
	a, err := New(&rest.Config{Host: server.URL}, Options{Namespaces: []string{"ns"}, Retry: func(_ context.Context, ask func() error) error { return ask() }})
	if err != nil {
		t.Fatal(err)
	}
	half := scenario.Bound{Value: 0.5}
	_, err = a.Act(t.Context(), scenario.Action{Kind: "delete", Rate: 100, Target: scenario.Selection{Resource: "pods", Share: &half, Order: "oldest"}})
	if slices.Sort(deleted); err != nil || !slices.Equal(deleted, []string{"old", "oldest"}) {
		t.Errorf("deleted %q (%v), want the two oldest", deleted, err)
	}
}

// Random values of a patch differ between objects, and between repetitions of an action.
func TestPatchesDrawAgain(t *testing.T) {
	a, err := New(&rest.Config{Host: "localhost"}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for range 2 {
		render, err := a.patches(Resource{}, scenario.Action{Kind: "patch", Patch: map[string]any{"data": map[string]any{"noise": "{{randAlphaNum 20}}"}}})
		if err != nil {
			t.Fatal(err)
		}
		for i := range 2 {
			text, err := render(one{index: i})
			if err != nil || slices.Contains(all, string(text)) {
				t.Errorf("rendered %s (%v), want a text that differs from %q", text, err, all)
			}
			all = append(all, string(text))
		}
	}
}
