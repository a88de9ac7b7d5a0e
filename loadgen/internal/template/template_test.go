package template

import (
	"reflect"
	"runtime"
	"strings"
	"testing"
	"time"
)

func mustParse(t *testing.T, text string) *Template {
	t.Helper()
	tmpl, err := Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return tmpl
}

func TestDocumentsOfATemplate(t *testing.T) {
	tmpl := mustParse(t, `
kind: A
metadata: {name: "a-{{.Iteration}}-{{.Replica}}"}
---
# nothing but a comment
---
{{- range $i := until 2}}
kind: B
spec: {n: {{$i}}, size: {{ default 3 $.size }}}
---
{{- end}}
`)
	got, err := tmpl.Documents(map[string]any{"Iteration": 4, "Replica": 2, "size": 7}, 1, 0)
	if err != nil {
		t.Fatal(err)
	}
	want := []map[string]any{
		{"kind": "A", "metadata": map[string]any{"name": "a-4-2"}},
		{"kind": "B", "spec": map[string]any{"n": 0, "size": 7}},
		{"kind": "B", "spec": map[string]any{"n": 1, "size": 7}},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %v\nwant %v", got, want)
	}
}

// A Template must be small, because a directory may have thousands of manifests, and each is a template.
func TestTemplatesTakeLittleMemory(t *testing.T) {
	heap := func() int {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return int(m.HeapAlloc)
	}
	before := heap()
	all := make([]*Template, 500)
	for i := range all {
		all[i] = mustParse(t, "kind: A\nmetadata: {name: 'a-{{ add .Replica 1 }}'}\n")
	}
	if each := (heap() - before) / len(all); each > 20<<10 {
		t.Errorf("a Template of 50 bytes needs %d bytes", each)
	}
	runtime.KeepAlive(all)
}

func TestLinesOfDocuments(t *testing.T) {
	tmpl := mustParse(t, "\na: 1\n---\n\n---\n# b\nb: 1\n--- \nc: 1\n")
	for document, line := range []int{2, 6, 9} {
		if got := tmpl.Line(document, 3); got != line {
			t.Errorf("Line(%d, 3) = %d, want %d", document, got, line)
		}
		if got := tmpl.Line(document, 4); got != 1 {
			t.Errorf("of 4 documents with unknown lines, document %d begins in line %d", document, got)
		}
	}
}

// Dates without a time zone are in UTC on every machine.
func TestDatesAreInUTC(t *testing.T) {
	defer func(before *time.Location) { time.Local = before }(time.Local)
	time.Local = time.FixedZone("there", 3600)
	tmpl := mustParse(t, `a: '{{toDate "2006-01-02" "2024-05-06"}} {{mustToDate "2006-01-02" "2024-05-06" | unixEpoch}}'`)
	got, err := tmpl.Documents(nil, 1, 0)
	if want := "2024-05-06 00:00:00 +0000 UTC 1714953600"; err != nil || got[0]["a"] != want {
		t.Errorf("got %v (%v), want %s", got, err, want)
	}
}

// The limit for indentation depends on the number of lines of a string, not on its length.
func TestIndentOfALargeText(t *testing.T) {
	tmpl := mustParse(t, `a: |{{ .text | nindent 8 }}`)
	got, err := tmpl.Documents(map[string]any{"text": strings.Repeat("x", 1<<20)}, 1, 0)
	if err != nil || len(got[0]["a"].(string)) < 1<<20 {
		t.Error(err)
	}
	if _, err := mustParse(t, `a: {{ indent 2000000000 "x" }}`).Documents(nil, 1, 0); err == nil {
		t.Error("the template wrote two billion spaces")
	}
}

// Documents and NewShape replace a List by its items. Other objects with the field items stay unchanged.
func TestListsAreTheirItems(t *testing.T) {
	tmpl := mustParse(t, `
apiVersion: v1
kind: List
items:
- {kind: A, n: "{{.n}}"}
- {kind: B}
---
{apiVersion: v1, kind: ConfigMapList, items: [{kind: ConfigMap}]}
`)
	values := map[string]any{"n": "x"}
	got, err := tmpl.Documents(values, 1, 0)
	if err != nil {
		t.Fatal(err)
	}
	var kinds []any
	for _, one := range got {
		kinds = append(kinds, one["kind"])
	}
	if want := []any{"A", "B", "ConfigMapList"}; !reflect.DeepEqual(kinds, want) || got[0]["n"] != "x" {
		t.Errorf("got %v", got)
	}
	shape, err := tmpl.NewShape(values, 1, 0)
	if err != nil || len(shape.Documents) != len(got) {
		t.Errorf("shape %+v (%v)", shape, err)
	}
}

func TestDrawsDependOnSeedAndTurn(t *testing.T) {
	tmpl := mustParse(t, `{a: "{{randAlphaNum 12}}", b: "{{uuidv4}}", c: {{randInt 5 500000}}, d: "{{randBytes 9}}", e: "{{shuffle "abcdefghijklmnop"}}", f: "{{randNumeric 9}}", g: '{{randAlpha 9}}'}`)
	render := func(tmpl *Template, seed int64, turn uint64) map[string]any {
		got, err := tmpl.Documents(nil, seed, turn)
		if err != nil {
			t.Fatal(err)
		}
		return got[0]
	}
	first := render(tmpl, 7, 3)
	if again := render(mustParse(t, tmpl.text), 7, 3); !reflect.DeepEqual(first, again) {
		t.Errorf("with the same seed and turn: first %v, then %v", first, again)
	}
	for _, other := range []map[string]any{render(tmpl, 8, 3), render(tmpl, 7, 4)} {
		for key, value := range other {
			if value == first[key] {
				t.Errorf("%s is also %v with another seed or turn", key, value)
			}
		}
	}
}

func TestErrorsOfTemplates(t *testing.T) {
	for text, want := range map[string]string{
		"a: 1\nb: {{.x":                "line 2: unclosed action",
		"a: {{nosuch 1}}":              `line 1: there is no function "nosuch" (use a sprig function that does not read the environment, the clock or the network)`,
		"a: 1\nb: {{.size}}":           `line 2: <.size>: there is no value "size" (give it one: vars: {size: ...})`,
		"a: {{env \"HOME\"}}":          `line 1: there is no function "env" (use a sprig function that does not read the environment, the clock or the network)`,
		"a: {{ago 1}}":                 `line 1: there is no function "ago"`,
		"a: {{durationRound 1}}":       `line 1: there is no function "durationRound"`,
		"a: {{derivePassword}}":        `line 1: there is no function "derivePassword"`,
		"- 1\n- 2":                     `the template does not render an object: "[1 2]" (a manifest has fields: apiVersion, kind, metadata)`,
		"a: 1\n{{if true}}b: [{{end}}": `the template does not render valid YAML: did not find expected node content, at "b: ["`,
		"a: {{randInt 5 5}}":           `line 1: <randInt 5 5>: error calling randInt: randInt 5 5: the range from 5 to 5 is empty`,
	} {
		tmpl, err := Parse(text)
		if err == nil {
			_, err = tmpl.Documents(map[string]any{}, 1, 0)
		}
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q:\n got %v\nwant %s", text, err, want)
		}
	}
}
