package strictyaml_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stormglass/stormglass/internal/strictyaml"
)

// A switch without a value is refused. Otherwise it would count as off.
func TestSwitchWithoutAValue(t *testing.T) {
	var into struct {
		Gates map[string]bool `yaml:"gates"`
	}
	doc, err := strictyaml.Parse("a.yaml", []byte("gates:\n  A: true\n  B:\n"))
	if err != nil {
		t.Fatal(err)
	}
	const want = "a.yaml:3: gates.B: it has no value (write true or false)"
	if err := doc.Decode(&into); err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}

// A second document in the value of an override is refused, not ignored.
func TestSecondDocumentInAnOverride(t *testing.T) {
	doc, err := strictyaml.Parse("a.yaml", []byte("nodes: 1\n"))
	if err != nil {
		t.Fatal(err)
	}
	const want = "--set nodes={count: 1} --- x: 1: the value contains a second YAML document (write a single value)"
	if err := doc.Set("nodes={count: 1}\n---\nx: 1"); err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}

// A large document with long names and many errors is reported in a few short lines.
func TestErrorsAreBounded(t *testing.T) {
	long := strings.Repeat("k", 1<<20)
	var many, named strings.Builder
	fmt.Fprintf(&many, "gates:\n  ? '%s'\n  :\n", long)
	for i := range strictyaml.MaxErrors + 50 {
		fmt.Fprintf(&many, "    f%d: [x]\n", i)
	}
	named.WriteString("items:\n")
	for i := range 1001 {
		fmt.Fprintf(&named, "  - {name: n%d}\n", i)
	}
	named.WriteString("  - {name: last, size: x}\n")
	for name, c := range map[string]struct {
		text  string
		lines int
		want  string
	}{
		"below a long key":    {many.String(), strictyaml.MaxErrors + 1, "\na.yaml: 50 more errors (correct the errors above first)"},
		"in a long list":      {named.String(), 1, ": items[1001].size: "},
		"aliases of one text": {"a: &a " + long + "\nb: [" + strings.Repeat("*a, ", 64) + "]\n", 1, "too large when its aliases are expanded"},
	} {
		var into struct {
			Gates map[string]map[string]int `yaml:"gates"`
			Items []struct {
				Name string `yaml:"name"`
				Size int    `yaml:"size"`
			} `yaml:"items"`
		}
		doc, err := strictyaml.Parse("a.yaml", []byte(c.text))
		if err == nil {
			err = doc.Decode(&into)
		}
		if err == nil {
			t.Errorf("%s: Decode returns no error", name)
			continue
		}
		got := err.Error()
		if lines := 1 + strings.Count(got, "\n"); lines != c.lines || len(got) > 2000*lines || !strings.Contains(got, c.want) {
			t.Errorf("%s: %d lines, %d bytes: %.300s", name, lines, len(got), got)
		}
	}
}
