package object

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/stormglass/stormglass/loadgen/scenario"
)

// A document is read at its path. The load creates no objects and needs no permissions.
func TestDocumentsAreReadAtTheirPaths(t *testing.T) {
	var accepted string
	s := newStub(t, func(_ http.ResponseWriter, r *http.Request, _ []byte) bool {
		accepted = r.Header.Get("Accept")
		return false
	})
	for path, want := range map[string]string{"/apis": "as=APIGroupDiscoveryList", "/openapi/v2": "application/json"} {
		l := newLoad(func(l *scenario.Load) { l.Verb, l.Resource = "get", path })
		got := ask(t, prepared(t, s, l), 0, 200, `{"items":[]}`)
		if !slices.Equal(got, []string{path}) || !strings.Contains(accepted, want) {
			t.Errorf("request path %s, Accept %s", got, accepted)
		}
		if needs := Needs(l); len(needs) > 0 {
			t.Errorf("%s needs %v", path, needs)
		}
	}
	if n := s.count(http.MethodPost); n > 0 {
		t.Errorf("Prepare created %d objects", n)
	}
	for status, want := range map[int]bool{404: true, 403: false} { // whether the load starts
		refused := newStub(t, func(w http.ResponseWriter, _ *http.Request, _ []byte) bool { refuse(w, status, "no"); return true })
		op, err := NewOperation(refused.target(), newLoad(func(l *scenario.Load) { l.Verb, l.Resource = "get", "/openapi/v3/none" }))
		must(t, err)
		if err := op.Prepare(t.Context()); (err == nil) != want || err != nil && !strings.Contains(err.Error(), "/openapi/v3/none") {
			t.Errorf("%d: %v", status, err)
		}
	}
}
