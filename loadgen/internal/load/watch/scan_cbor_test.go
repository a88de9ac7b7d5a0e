package watch

import (
	"bytes"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/cbor"
	"k8s.io/apimachinery/pkg/runtime/serializer/cbor/direct"
)

// Events in CBOR, as an API server writes them, give the same as in JSON, in pieces of any size, and each with its last byte.
func TestEventsInCBOR(t *testing.T) {
	scheme := runtime.NewScheme()
	encode := func(o map[string]any) []byte {
		var b bytes.Buffer
		if err := cbor.NewSerializer(scheme, scheme).Encode(&unstructured.Unstructured{Object: o}, &b); err != nil {
			t.Fatal(err)
		}
		return b.Bytes()
	}
	object := func(name, version string, annotations map[string]any) map[string]any {
		return map[string]any{
			"apiVersion": "features.example.com/v1", "kind": "Route", "spec": map[string]any{"weight": int64(3), "hosts": []any{"a"}},
			"metadata": map[string]any{"name": name, "namespace": "storm", "resourceVersion": version, "annotations": annotations},
		}
	}
	var stream []byte
	var json []string
	for _, e := range []struct {
		kind   string
		object map[string]any
	}{
		{"ADDED", object("one", "5", map[string]any{StampAnnotation: "1:2", "other": "x"})},
		{"BOOKMARK", object("", "6", map[string]any{endAnnotation: "true"})},
		{"DELETED", object("one", "7", map[string]any{})},
		{"ERROR", map[string]any{"apiVersion": "v1", "kind": "Status", "metadata": map[string]any{}, "code": int64(410), "message": "too old resource version"}},
	} {
		raw := encode(e.object)
		event, err := direct.Marshal(metav1.WatchEvent{Type: e.kind, Object: runtime.RawExtension{Raw: raw}})
		if err != nil {
			t.Fatal(err)
		}
		stream = append(stream, event...)
		text, err := (&unstructured.Unstructured{Object: e.object}).MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		in := &seen{}
		if err := newJSON(in, levelEvent).feed([]byte(`{"type":"` + e.kind + `","object":` + string(text) + `}`)); err != nil {
			t.Fatal(err)
		}
		json = append(json, in.lines...)
		got := &seen{}
		if s := newCBOR(got, levelEvent); s.feed(event) != nil || len(got.lines) != 1 || !s.idle() {
			t.Fatalf("%s: %q with its last byte", e.kind, got.lines)
		}
	}
	for n := 1; n <= len(stream); n++ {
		got := &seen{}
		s := newCBOR(got, levelEvent)
		for rest := stream; len(rest) > 0; {
			k := min(n, len(rest))
			if err := s.feed(rest[:k]); err != nil {
				t.Fatal(err)
			}
			rest = rest[k:]
		}
		if !slices.Equal(got.lines, json) || !s.idle() {
			t.Fatalf("in pieces of %d: %q, want %q", n, got.lines, json)
		}
	}
	list := &seen{}
	if err := newCBOR(list, levelObject).feed(encode(object("", "99", nil))); err != nil || len(list.lines) != 1 {
		t.Errorf("a list: %q, %v", list.lines, err)
	}
	if err := newCBOR(&seen{}, levelEvent).feed([]byte(`{"type":"ADDED"}`)); err == nil {
		t.Error("the scanner accepts JSON as CBOR")
	}
}
