package importer

import (
	"fmt"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
	"golang.org/x/tools/txtar"
)

// schemaKey is a key of a type in a tool's configuration, as the tool's Go type declares it.
type schemaKey struct {
	name string // TYPE.KEY
	key  string
	of   string // type of the value, such as int or []Job
}

// schemaWalk tries every key of a tool's configuration in every mapping of its type.
type schemaWalk struct {
	t       *testing.T
	line    string // the import
	before  string
	types   map[string][]schemaKey
	values  map[string]string // values to try, in YAML, by TYPE.KEY
	visited map[string]bool   // by type
	noticed map[string]bool   // by TYPE.KEY
	root    *yaml.Node
	file    string
}

// TestKnownKeysAreNoticed sets each key of each tool's schema in a configuration. The scenario or the remarks differ then,
// or the import fails. Each archive contains the schema, a configuration with every type, and the keys without effect.
func TestKnownKeysAreNoticed(t *testing.T) {
	files, err := filepath.Glob("testdata/schema/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no schemas: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			a, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			line, _, _ := strings.Cut(string(a.Comment), "\n")
			tables := map[string]map[string]string{}
			isTable := func(f txtar.File) bool { return !strings.Contains(f.Name, ".") }
			for _, f := range a.Files {
				if isTable(f) {
					tables[f.Name] = map[string]string{}
					for row := range strings.Lines(string(f.Data)) {
						name, value, _ := strings.Cut(strings.TrimSpace(row), " ")
						tables[f.Name][name] = value
					}
				}
			}
			a.Files = slices.DeleteFunc(a.Files, isTable)
			unpack(t, a)
			w := schemaWalk{t: t, line: line, types: map[string][]schemaKey{}, values: tables["values"], visited: map[string]bool{}, noticed: map[string]bool{}}
			for name, of := range tables["schema"] {
				typ, key, _ := strings.Cut(name, ".")
				w.types[typ] = append(w.types[typ], schemaKey{name, key, of})
			}
			for _, f := range a.Files {
				if typ := tables["files"][f.Name]; typ != "" {
					w.walkFile(f, typ)
				}
			}
			for _, name := range slices.Sorted(maps.Keys(tables["schema"])) {
				typ, _, _ := strings.Cut(name, ".")
				why, none := tables["noEffect"][name]
				switch {
				case !w.visited[typ]:
					t.Errorf("the configuration has no %s", typ)
				case none && (why == "" || w.noticed[name]):
					t.Errorf("%s has an effect, or noEffect gives no reason", name)
				case !none && !w.noticed[name]:
					t.Errorf("nothing differs with %s", name)
				}
			}
		})
	}
}

var lineNumber = regexp.MustCompile(`(\.ya?ml):\d+`)

// result imports the configuration. It removes the numbers of lines from the result, because each change moves lines.
func (w *schemaWalk) result() (string, error) {
	r, err := runImport(w.t, w.line)
	if err != nil {
		return "", err
	}
	return lineNumber.ReplaceAllString(string(r.Scenario)+fmt.Sprint(r.Remarks), "$1"), nil
}

func (w *schemaWalk) walkFile(f txtar.File, typ string) {
	w.root, w.file = new(yaml.Node), f.Name
	if err := yaml.Unmarshal(f.Data, w.root); err != nil {
		w.t.Fatal(err)
	}
	w.rebase()
	w.walk(w.root.Content[0], typ)
	write(w.t, f.Name, f.Data)
}

// rebase writes the configuration and stores its result. Later results are compared with it.
func (w *schemaWalk) rebase() {
	data, err := yaml.Marshal(w.root)
	if err != nil {
		w.t.Fatal(err)
	}
	write(w.t, w.file, data)
	if w.before, err = w.result(); err != nil {
		w.t.Fatal(err)
	}
}

// walk tries all keys of a type in the mapping n, or in each mapping of the list n, and in the mappings below.
func (w *schemaWalk) walk(n *yaml.Node, typ string) {
	if n.Kind == yaml.SequenceNode {
		all := n.Content
		for i, one := range all {
			if typ == "Job" { // without later jobs, an import takes a fraction of the time
				n.Content = all[:i+1]
				w.rebase()
			}
			w.walk(one, typ)
		}
		if typ == "Job" {
			n.Content = all[:1]
			w.rebase()
		}
		return
	}
	w.visited[typ] = true
	for _, k := range w.types[typ] {
		for _, text := range w.candidates(k) {
			if w.noticed[k.name] {
				break
			}
			var value yaml.Node
			if err := yaml.Unmarshal([]byte(text), &value); err != nil {
				w.t.Fatal(err)
			}
			content := n.Content
			n.Content = exceptKey(n, k.key)
			if text != "" {
				n.Content = append(n.Content, &yaml.Node{Kind: yaml.ScalarNode, Value: k.key}, value.Content[0])
			}
			data, err := yaml.Marshal(w.root)
			if err != nil {
				w.t.Fatal(err)
			}
			n.Content = content
			write(w.t, w.file, data)
			after, err := w.result()
			w.noticed[k.name] = err != nil || after != w.before
		}
	}
	method := ""
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == "method" { // its params have the type of this name
			method = n.Content[i+1].Value
		}
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		for _, k := range w.types[typ] {
			of := strings.TrimPrefix(k.of, "[]")
			if k.key == "params" {
				of = method
			}
			if n.Content[i].Value == k.key && w.types[of] != nil {
				w.walk(n.Content[i+1], of)
			}
		}
	}
}

// exceptKey returns the keys and values of a mapping without the given key.
func exceptKey(n *yaml.Node, key string) (all []*yaml.Node) {
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value != key {
			all = append(all, n.Content[i], n.Content[i+1])
		}
	}
	return all
}

// candidates returns values to try, in YAML. An empty one removes the key.
func (w *schemaWalk) candidates(k schemaKey) []string {
	if text, ok := w.values[k.name]; ok {
		return []string{text}
	}
	switch k.of {
	case "bool":
		return []string{"true", "false"}
	case "string", "any":
		return []string{"zz", ""}
	case "[]string", "String":
		return []string{"[zz]", ""}
	case "Duration":
		return []string{"77s"}
	case "map", "ObjectMeta", "LabelSelector":
		return []string{"{zz: zz}", ""}
	}
	if strings.Contains(k.of, "int") || strings.Contains(k.of, "float") {
		return []string{"3"}
	}
	if strings.HasPrefix(k.of, "[]") {
		return []string{"[{}]", ""}
	}
	return []string{"{}", ""}
}
