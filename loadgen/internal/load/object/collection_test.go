package object

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/stormglass/stormglass/loadgen/scenario"
)

// collections makes a load delete the ConfigMaps of two namespaces, six in all, two at a time.
func collections(l *scenario.Load) {
	l.Verb, l.Objects, l.Namespaces, l.Limit, l.LabelSelector = "deletecollection", 6, 2, 2, "tier in (a,b)"
}

// A deletecollection covers only the load's own objects, also with other selectors. A namespace is not used again before all
// its objects have been recreated.
func TestDeleteCollectionIsOfOwnObjects(t *testing.T) {
	op := prepared(t, newStub(t, nil), newLoad(collections))
	const query = "?labelSelector=stormglass.dev%2Fload%3Dload%2Ctier+in+%28a%2Cb%29&limit=2"
	got := fmt.Sprint(ask(t, op, 0, 200, `{}`), ask(t, op, 1, 200, `{}`), ask(t, op, 2, 200, `{}`))
	want := fmt.Sprintf("[%s%s] [/api/v1/namespaces/storm-load-1/configmaps%s] []", configMaps, query, query)
	if got != want {
		t.Errorf("requests:\n%s\nwant:\n%s", got, want)
	}
	if kind := op.Kinds()[0]; kind.Verb != "deletecollection" || kind.Variant != "limit=2 labels=tier in (a,b)" {
		t.Errorf("counted as %+v", kind)
	}
	if ask(t, prepared(t, newStub(t, nil), newLoad(collections)), 0, 429, `{}`) == nil {
		t.Error("a refused request has no path")
	}
}

// Exactly the objects that a request deleted are recreated. Then the namespace is used again.
func TestDeletedCollectionsAreMadeAgain(t *testing.T) {
	var mu sync.Mutex
	made := map[string]bool{}
	var again []string
	s := newStub(t, func(w http.ResponseWriter, r *http.Request, body []byte) bool {
		mu.Lock()
		defer mu.Unlock()
		switch {
		case r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/configmaps"):
			for i := range 6 {
				if name := fmt.Sprintf("load-%d", i); strings.Contains(string(body), `"`+name+`"`) {
					again, made[name] = append(again, name), true
				}
			}
		case r.Method == http.MethodGet && r.URL.Path == configMaps && r.URL.Query().Get("continue") == "":
			fmt.Fprint(w, `{"metadata":{"continue":"a b"},"items":[{"metadata":{"name":"load-1"}},{"metadata":{"name":"load-new-1-7"}}]}`)
			return true
		case r.Method == http.MethodGet && r.URL.Path == configMaps:
			fmt.Fprint(w, `{"items":[{"metadata":{"name":"other-0"}}]}`)
			return true
		}
		return false
	})
	op := prepared(t, s, newLoad(collections))
	if len(made) != 6 {
		t.Fatalf("made %v", made)
	}
	again = nil
	if got := ask(t, op, 0, 200, `{}`); !strings.HasPrefix(got[0], configMaps) {
		t.Fatalf("requests = %v, want one for the recreated collection", got)
	}
	if got := ask(t, op, 1, 429, `{}`); got == nil { // the other namespace, which can be used again after a 429
		t.Fatal("unsent")
	}
	runBackground(t, op)
	await(t, "namespace that is whole again", func() bool {
		first, second := ask(t, op, 2, 429, `{}`), ask(t, op, 3, 429, `{}`)
		return len(first) == 1 && len(second) == 1 && first[0] != second[0]
	})
	mu.Lock()
	defer mu.Unlock()
	if len(again) != 2 || strings.Contains(strings.Join(again, " "), "load-1") {
		t.Errorf("made again: %v, want two of the three of the namespace", again)
	}
}

func TestNeedsOfDeleteCollection(t *testing.T) {
	var got []string
	for _, n := range Needs(newLoad(collections)) {
		got = append(got, n.Verb+" "+n.Resource)
	}
	if want := "deletecollection configmaps, list configmaps, create configmaps, patch configmaps, create namespaces"; strings.Join(got, ", ") != want {
		t.Errorf("needs %q, want %s", got, want)
	}
}
