package object

import (
	"encoding/base64"
	"encoding/json"
	"strings"
	"testing"

	"github.com/stormglass/stormglass/loadgen/internal/load"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

// written holds the fields that a test reads of a manifest.
type written struct {
	APIVersion, Kind string
	Metadata         struct {
		Name, Namespace, ResourceVersion string
		Labels, Annotations              map[string]string
	}
	Data map[string]string
	Spec map[string]any
}

// unserved returns a Set that needs no server.
func unserved(t testing.TB, name string, m manifest, l scenario.Load) *Set {
	t.Helper()
	s := newSet(nil, load.Target{Namespace: "storm", Labels: map[string]string{"stormglass.dev/run": "test"}, Seed: 1}, l, name)
	must(t, s.own())
	s.manifest = &m
	s.resource = &Resource{name: name, root: "/apis/x/v1", plural: "things", namespaced: true}
	for _, ns := range s.namespaces {
		s.paths = append(s.paths, s.resource.collection(ns))
	}
	must(t, s.compile())
	return s
}

// Every manifest is JSON and contains name, namespace, labels and payload. The
// payload changes at each turn, in manifests and in patches.
func TestBodies(t *testing.T) {
	manifests := map[string]manifest{}
	for _, name := range scenario.Manifests {
		m, ok := builtIn(name)
		if !ok {
			t.Fatalf("%s has no manifest", name)
		}
		manifests[name] = m
	}
	own := map[string]any{
		"apiVersion": "example.com/v1", "kind": "Thing", "spec": map[string]any{"payload": "mine"},
		"metadata": map[string]any{"name": "x", "generateName": "y", "namespace": "z", "annotations": map[string]any{"a": "b"}, "labels": map[string]any{"mine": "too"}},
	}
	var err error
	manifests["things.example.com"], err = given(own)
	must(t, err)
	for name, m := range manifests {
		s := unserved(t, name, m, newLoad(func(l *scenario.Load) { l.Objects, l.Namespaces, l.Size = 4, 2, 600 }))
		seen := map[string]bool{}
		for turn := range int64(1300) { // more than twice the payload's length
			var o written
			must(t, json.Unmarshal(s.appendObject(nil, s.made, 3, turn, 0), &o))
			if o.Metadata.Name != "load-3" || o.Metadata.Namespace != "storm-load-1" || o.Metadata.Labels["stormglass.dev/run"] != "test" ||
				o.Metadata.Labels["stormglass.dev/load"] != "load" || o.Kind != m.kind || o.APIVersion != m.apiVersion {
				t.Fatalf("%s: %+v", name, o)
			}
			payload := o.raw(name)
			if name == "secrets" {
				b, err := base64.StdEncoding.DecodeString(payload)
				must(t, err)
				payload = string(b)
			}
			if name == "things.example.com" && (o.Spec["payload"] != "mine" || o.Metadata.Annotations["a"] != "b" || o.Metadata.Labels["mine"] != "too") {
				t.Fatalf("what was given is gone: %+v", o)
			}
			if len(payload) != 600 || seen[payload] {
				t.Fatalf("%s: at turn %d a payload of %d bytes, seen before: %v", name, turn, len(payload), seen[payload])
			}
			seen[payload] = true
			var p written
			must(t, json.Unmarshal(s.AppendPatch(nil, 3, turn, "stormglass.dev/stamp", []byte("id:5")), &p))
			if p.Metadata.Annotations["stormglass.dev/stamp"] != "id:5" {
				t.Fatalf("%s: patch %+v", name, p)
			}
			must(t, json.Unmarshal(s.AppendPatch(nil, 3, turn, "", nil), &p))
			must(t, json.Unmarshal(s.appendObject(nil, s.made, 3, turn+1, 0), &o))
			spec, _ := p.Spec["payload"].(string)
			if patched := p.Data["payload"] + spec + p.Metadata.Annotations[PayloadAnnotation]; patched != o.raw(name) {
				t.Fatalf("%s: a patch and an update of the same turn differ", name)
			}
		}
		if name == "things.example.com" && own["metadata"].(map[string]any)["name"] != "x" {
			t.Error("compile changed the scenario's manifest")
		}
	}
}

// raw returns the payload as written.
func (w *written) raw(name string) string {
	if strings.HasSuffix(name, ".example.com") {
		return w.Metadata.Annotations[PayloadAnnotation]
	}
	spec, _ := w.Spec["payload"].(string)
	return w.Data["payload"] + spec + w.Metadata.Annotations[PayloadAnnotation]
}

// Small payloads also differ from the previous turn's.
func TestSmallPayloads(t *testing.T) {
	p := newPayload(64, 1)
	for size := range 9 {
		for turn := range int64(100) {
			a, b := p.append(nil, size, turn), p.append(nil, size, turn+1)
			if len(a) != size || size > 0 && string(a) == string(b) {
				t.Fatalf("size %d, turn %d: %q and %q", size, turn, a, b)
			}
		}
	}
}

// An object has the same size at every turn, and sizes are drawn by weight.
func TestSizesByWeight(t *testing.T) {
	m, _ := builtIn("configmaps")
	s := unserved(t, "configmaps", m, newLoad(func(l *scenario.Load) {
		l.Objects = 10_000
		l.Sizes = []scenario.SizeShare{{Size: 10, Weight: 8}, {Size: 1000, Weight: 2}}
	}))
	large := 0
	for i := range s.Len() {
		if size := s.sizeOf(int64(i)); size == 1000 {
			large++
		}
	}
	if large < 1800 || large > 2200 {
		t.Errorf("%d of 10000 are large, want about 2000", large)
	}
}
