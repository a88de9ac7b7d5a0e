package object

import (
	"bytes"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/cbor"

	"github.com/stormglass/stormglass/loadgen/scenario"
)

func inCBOR(t *testing.T, o runtime.Object) []byte {
	t.Helper()
	scheme := runtime.NewScheme()
	var b bytes.Buffer
	must(t, cbor.NewSerializer(scheme, scheme).Encode(o, &b))
	return b.Bytes()
}

// Token and version of CBOR responses are found in pieces of any size, and incomplete responses are rejected.
func TestMetadataOfCBOR(t *testing.T) {
	one := unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "features.example.com/v1", "kind": "Route",
		"metadata": map[string]any{"name": "one", "namespace": "storm", "resourceVersion": "123", "annotations": map[string]any{"continue": "not this"}},
		"spec":     map[string]any{"hosts": []any{"a", "b"}, "weight": int64(17), "more": strings.Repeat("x", 2000), "resourceVersion": "nor this", "metadata": map[string]any{"resourceVersion": "9"}},
	}}
	list := &unstructured.UnstructuredList{Object: map[string]any{
		"apiVersion": "features.example.com/v1", "kind": "RouteList", "metadata": map[string]any{"resourceVersion": "77", "continue": "to/ken=="},
	}}
	for range 20 {
		list.Items = append(list.Items, one)
	}
	for _, c := range []struct {
		o       runtime.Object
		token   string
		version uint64
	}{{list, "to/ken==", 77}, {&one, "", 123}} {
		body := inCBOR(t, c.o)
		for _, n := range []int{1, 2, 3, 7, 50, 16384, len(body)} {
			a := &Answer{}
			a.json.binary = true
			must(t, read(a, body, n))
			if string(a.Token()) != c.token || a.Version() != c.version {
				t.Errorf("token %q, version %d in pieces of %d", a.Token(), a.Version(), n)
			}
			if err := read(a, body[:len(body)-1], n); err == nil {
				t.Errorf("a truncated response counts as whole, in pieces of %d", n)
			}
			must(t, read(a, body, n)) // it is used again
		}
		a := &Answer{}
		a.json.binary = true
		if err := read(a, []byte(`{"kind":"RouteList"}`), 100); err == nil {
			t.Error("the Answer accepts JSON as CBOR")
		}
	}
}

func TestAcceptOfCBOR(t *testing.T) {
	for want, o := range map[string]scenario.Operation{
		"application/cbor": {Verb: "list", Encoding: "cbor"},
		"application/cbor;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io": {Verb: "list", Encoding: "cbor", Form: "metadata"},
	} {
		if got := accept(o); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
