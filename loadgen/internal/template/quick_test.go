package template

import (
	"slices"
	"testing"
)

// The quick evaluation returns the same values as text/template, including random values.
func TestQuickValuesAreThoseOfTheTemplate(t *testing.T) {
	const text = `kind: A
metadata: {name: "a-{{.Iteration}}-{{ .Replica }}", labels: {app: {{.app}}}}
{{/* nothing */ -}}
data: {text: "{{ randAlphaNum 20 }}", n: "{{randNumeric 3}}", again: "{{.app}}"}
`
	for _, app := range []any{"web", 7, true, 1.5, "a b", "", nil, []int{1}, int64(3)} {
		values := map[string]any{"Iteration": 3, "Replica": 12, "app": app}
		q, slow := mustParse(t, text), mustParse(t, text)
		if len(q.quick) != 6 {
			t.Fatalf("%d actions", len(q.quick))
		}
		slow.quick = nil
		shape, err := q.NewShape(map[string]any{"Iteration": 0, "Replica": 1, "app": "web"}, 5, 0)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := slow.NewShape(map[string]any{"Iteration": 0, "Replica": 1, "app": "web"}, 5, 0); err != nil {
			t.Fatal(err)
		}
		for turn := range uint64(5) {
			got, ok, err := q.Values(shape, values, 5, turn)
			want, wantOK, wantErr := slow.Values(shape, values, 5, turn)
			if ok != wantOK || (err == nil) != (wantErr == nil) || ok && !slices.Equal(got, want) {
				t.Errorf("%v: got %q %v %v, want %q %v %v", app, got, ok, err, want, wantOK, wantErr)
			}
		}
	}
}

// text/template evaluates templates with other actions, and reports missing values.
func TestQuickLeavesOthersToTheTemplate(t *testing.T) {
	for _, text := range []string{
		"a: {{.x.y}}", "a: {{if .x}}b{{end}}", "a: {{$x := 1}}", "a: {{.x | quote}}", "a: {{randInt 1 5}}", "a: {{upper .x}}", "a: {{quote 1}}",
		`{{define "b"}}c{{end}}a: {{template "b"}}`, "a: {{uuidv4}}",
	} {
		if q := mustParse(t, text); q.quick != nil {
			t.Errorf("%s has %d quick actions, want none", text, len(q.quick))
		}
	}
	q := mustParse(t, "a: {{.x}}")
	shape, err := q.NewShape(map[string]any{"x": "b"}, 1, 1)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := q.Values(shape, map[string]any{}, 1, 1); err == nil {
		t.Error("a missing value causes no error")
	}
}
