package template

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"
)

const shop = `# {{.Iteration}}
apiVersion: v1
kind: ConfigMap
metadata:
  name: c-{{.Iteration}}-{{.Replica}}
  labels: {app: "{{.app}}", "{{.app}}": x}
data:
  text: "{{randAlphaNum 40}}"
  block: |
    a {{.Replica}}
    b
---
kind: B
spec:
  replicas: {{mod .Replica 3}}
  odd: {{eq (mod .Replica 2) 1}}
  version: 1.{{.Replica}}
  text: n{{.Replica}}
  other: {{.app}}
  quoted: '{{.Replica}}'
  ports: [{port: 8{{.Replica}}}, {{.Iteration}}]
  {{- if eq .Replica 4}}
  four: true
  {{- end}}
  html: <&>
  path: /a\{{.Replica}}"b
`

// TestShapeGivesTheDocuments checks that a shape filled with values equals the parsed documents of the rendered text.
func TestShapeGivesTheDocuments(t *testing.T) {
	seed := rand.Int64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(uint64(seed), 0))
	tmpl := mustParse(t, shop)
	values := func() map[string]any {
		apps := []any{"web", "null", "true", "a.b/c", "no", "~", "0x1f", "1e3", "-x", "a: b", `"`, "", 7, 1.5, "é", "2026-01-02", "Null", "n"}
		return map[string]any{"Iteration": random.IntN(12), "Replica": 1 + random.IntN(6), "app": apps[random.IntN(len(apps))]}
	}
	shape, err := tmpl.NewShape(map[string]any{"Iteration": 0, "Replica": 1, "app": "web"}, seed, 0)
	if err != nil || len(shape.Documents) != 2 {
		t.Fatalf("%+v, %v", shape, err)
	}
	var compiled []JSON
	for _, d := range shape.Documents {
		j, err := NewJSON(d)
		if err != nil {
			t.Fatal(err)
		}
		compiled = append(compiled, j)
	}
	fast := 0
	for turn := range uint64(2000) {
		with := values()
		slots, ok, err := tmpl.Values(shape, with, seed, turn)
		if err != nil {
			t.Fatal(err)
		}
		if !ok {
			continue
		}
		fast++
		documents, err := tmpl.Documents(with, seed, turn)
		if err != nil {
			t.Fatalf("%v: %v", with, err)
		}
		for i, want := range documents {
			text := compiled[i].Append(nil, slots)
			var got any
			if err := json.Unmarshal(text, &got); err != nil {
				t.Fatalf("with %v: %s: %v", with, text, err)
			}
			if !reflect.DeepEqual(got, throughJSON(t, want)) {
				t.Fatalf("%v: document %d: got\n%v\nwant\n%v", with, i, got, want)
			}
		}
	}
	if fast < 500 {
		t.Errorf("only %d of 2000 renderings use the shape", fast)
	}
}

// If the text or a value of a template contains marks, the template is rendered without a Shape.
func TestMarksInATemplate(t *testing.T) {
	values := map[string]any{"n": 1}
	for name, text := range map[string]string{
		"text":     "a: \ue0007\ue001\nb: \ue002\ue003\nn: {{.n}}",
		"escapes":  `{a: "\ue0007\uE001", b: "\U0000e002\ue003", n: "{{.n}}"}`,
		"base64":   "a: !!binary 7oCC7oCD\nn: {{.n}}",
		"a value":  `a: {{"x\xee\x80\x81\nb: \xee\x80\x80y"}}`,
		"ordinary": "a: x\nn: {{.n}}",
	} {
		tmpl := mustParse(t, text)
		shape, err := tmpl.NewShape(values, 1, 0)
		fast := false
		if err == nil && shape != nil {
			_, fast, err = tmpl.Values(shape, values, 1, 0)
		}
		if err != nil || fast != (name == "ordinary") {
			t.Errorf("%s: rendered with a shape: %v (%v)", name, fast, err)
		}
		if got, err := tmpl.Documents(values, 1, 0); err != nil || got[0]["a"] == "" {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
}

func throughJSON(t *testing.T, v any) (out any) {
	t.Helper()
	text, err := json.Marshal(v)
	if err == nil {
		err = json.Unmarshal(text, &out)
	}
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func BenchmarkDocuments(b *testing.B) {
	tmpl, err := Parse(shop)
	if err != nil {
		b.Fatal(err)
	}
	with := func(i int) map[string]any { return map[string]any{"Iteration": i, "Replica": i % 4, "app": "web"} }
	b.Run("read", func(b *testing.B) {
		for i := 0; b.Loop(); i++ {
			documents, err := tmpl.Documents(with(i), 1, uint64(i))
			if err != nil {
				b.Fatal(err)
			}
			for _, d := range documents {
				if _, err := json.Marshal(d); err != nil {
					b.Fatal(err)
				}
			}
		}
	})
	b.Run("shape", func(b *testing.B) {
		shape, err := tmpl.NewShape(with(0), 1, 0)
		if err != nil {
			b.Fatal(err)
		}
		var compiled []JSON
		for _, d := range shape.Documents {
			j, err := NewJSON(d)
			if err != nil {
				b.Fatal(err)
			}
			compiled = append(compiled, j)
		}
		var text []byte
		for i := 0; b.Loop(); i++ {
			slots, ok, err := tmpl.Values(shape, with(i), 1, uint64(i))
			if err != nil || !ok {
				b.Fatal(fmt.Errorf("turn %d does not fit the shape: %w", i, err))
			}
			for _, j := range compiled {
				text = j.Append(text[:0], slots)
			}
		}
	})
}
