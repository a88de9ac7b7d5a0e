package recording

import (
	"errors"
	"iter"
	"slices"
	"strings"
	"testing"
)

func seq(all ...Request) iter.Seq2[Request, error] {
	return func(yield func(Request, error) bool) {
		for _, r := range all {
			if !yield(r, nil) {
				return
			}
		}
	}
}

func TestLoadKeepsEachShapeObjectAndNamespaceOnce(t *testing.T) {
	get := Request{Verb: "get", Version: "v1", Resource: "configmaps", Namespace: "a", Name: "x", Code: 200}
	later, other := get, get
	later.At, later.ResourceVersion = 7, "0"
	other.At, other.Namespace, other.ResourceVersion = 9, "b", "1234"
	got, err := Load(Header{Actors: []Actor{{Name: "one"}}}, seq(get, get, later, other))
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Entries) != 4 || len(got.Shapes) != 3 || len(got.Objects) != 2 || !slices.Equal(got.Namespaces, []string{"a", "b"}) {
		t.Errorf("%d entries, %d shapes, %d objects, namespaces %v; want 4, 3, 2, [a b]", len(got.Entries), len(got.Shapes), len(got.Objects), got.Namespaces)
	}
	if v := got.Shapes[got.Entries[3].Shape].ResourceVersion; v != Exact {
		t.Errorf("an exact version is stored as %q", v)
	}
	if got.Last() != 9 {
		t.Errorf("last request at %d", got.Last())
	}
}

// The name in a watch's field selector is treated as an object, so that it is renamed together with the object.
func TestNameInFieldSelectorIsAnObject(t *testing.T) {
	got, err := Load(Header{Actors: make([]Actor, 1)}, seq(
		Request{Verb: "get", Resource: "configmaps", Namespace: "a", Name: "x"},
		Request{Verb: "watch", Resource: "configmaps", Namespace: "a", FieldSelector: "metadata.name=x,spec.a=b"},
	))
	if err != nil {
		t.Fatal(err)
	}
	if e := got.Entries; e[0].Object != e[1].Object || got.Shapes[e[1].Shape].FieldSelector != "spec.a=b" {
		t.Errorf("objects %d and %d, selector left %q", e[0].Object, e[1].Object, got.Shapes[e[1].Shape].FieldSelector)
	}
}

// The API server's audit events repeat the name of a namespace as its namespace.
func TestNamespacesAreInNoNamespace(t *testing.T) {
	got, err := Load(Header{Actors: make([]Actor, 1)}, seq(Request{Verb: "get", Resource: "namespaces", Namespace: "a", Name: "a"}))
	if err != nil || len(got.Namespaces) != 0 || got.Entries[0].Namespace != None || got.Entries[0].Object == None {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestLoadRefusesWhatIsNoRecording(t *testing.T) {
	h := Header{Actors: make([]Actor, 1)}
	if _, err := Load(h, seq()); !errors.Is(err, ErrEmpty) {
		t.Errorf("empty: %v", err)
	}
	for want, all := range map[string][]Request{
		"request 2 is earlier than the previous request":                    {{At: 5}, {At: 4}},
		"request 1 refers to actor 1, but the recording has only 1 actors":  {{Actor: 1}},
		"request 2 refers to actor -1, but the recording has only 1 actors": {{}, {Actor: -1}},
	} {
		if _, err := Load(h, seq(all...)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}
