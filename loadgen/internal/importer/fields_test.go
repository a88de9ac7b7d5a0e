package importer

import (
	"testing"

	"go.yaml.in/yaml/v3"
)

// TestListOfABase checks that errors about a list name the mapping that has the list, which can be in another file.
func TestListOfABase(t *testing.T) {
	d := newDraft(Options{}, "test.yaml")
	of := func(file, text string) *fields {
		var doc yaml.Node
		if err := yaml.Unmarshal([]byte(text), &doc); err != nil {
			t.Fatal(err)
		}
		return d.fieldsOf(file, doc.Content[0], "params")
	}
	of("test.yaml", "{a: 1}").over(of("module.yaml", "\nqueries: [null]")).list("queries")
	const want = "module.yaml:2: params.queries[0]: it is empty (write its fields, or leave it out)"
	if len(d.errs) != 1 || d.errs[0].Error() != want {
		t.Errorf("errors %v, want %s", d.errs, want)
	}
}
