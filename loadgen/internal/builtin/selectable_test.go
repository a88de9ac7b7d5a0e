package builtin

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	resourceapi "k8s.io/api/resource/v1"
)

// TestSelectableFieldsMatchKubernetes keeps the table of selectable fields equal to the
// conversions in the source of the Kubernetes that go.mod names.
func TestSelectableFieldsMatchKubernetes(t *testing.T) {
	dir, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "k8s.io/kubernetes").Output()
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(strings.TrimSpace(string(dir)), "pkg/apis/*/v*/conversion.go"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no conversions: %v", err)
	}
	found := map[string][]string{}
	for _, file := range files {
		version := filepath.Base(filepath.Dir(file))
		group := filepath.Base(filepath.Dir(filepath.Dir(file)))
		source, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for kind, fields := range conversions(source) {
			for name, of := range Resources() {
				of0, _, _ := strings.Cut(GroupOf(name), ".")
				if of.Kind == kind && (of0 == group || of0 == "" && group == "core") && strings.TrimPrefix(of.Versions[0], GroupOf(name)+"/") == version {
					found[name] = fields
				}
			}
		}
	}
	if len(found) != len(Selectable()) {
		t.Errorf("Kubernetes has selectable fields for %v, the table for %v", slices.Sorted(maps.Keys(found)), slices.Sorted(maps.Keys(Selectable())))
	}
	for name, want := range found {
		have := slices.Clone(Selectable()[name])
		slices.Sort(have)
		if slices.Sort(want); !slices.Equal(have, want) {
			t.Errorf("%s: the table has %v, Kubernetes %v", name, have, want)
		}
	}
}

// conversions returns the fields of each kind for which a file adds a conversion: the
// cases of the function, or the keys of a map in the same declaration.
func conversions(source *ast.File) map[string][]string {
	all := map[string][]string{}
	for _, d := range source.Decls {
		ast.Inspect(d, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok || len(call.Args) != 2 || !named(call.Fun, "AddFieldLabelConversionFunc") {
				return true
			}
			with, ok := call.Args[0].(*ast.CallExpr)
			if !ok {
				return true
			}
			kind := text(with.Args[0])
			if all[kind] = texts(call.Args[1]); len(all[kind]) == 0 {
				all[kind] = texts(d)
			}
			return true
		})
	}
	return all
}

func named(e ast.Expr, name string) bool {
	s, ok := e.(*ast.SelectorExpr)
	return ok && s.Sel.Name == name
}

// texts returns the strings in the cases of a switch and the keys of a map.
func texts(n ast.Node) []string {
	var all []string
	ast.Inspect(n, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CaseClause:
			for _, e := range n.List {
				all = append(all, text(e))
			}
		case *ast.KeyValueExpr:
			all = append(all, text(n.Key))
		}
		return true
	})
	return all
}

func text(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.BasicLit:
		s, _ := strconv.Unquote(e.Value)
		return s
	case *ast.SelectorExpr:
		return map[string]string{
			"ResourceSliceSelectorNodeName": resourceapi.ResourceSliceSelectorNodeName,
			"ResourceSliceSelectorDriver":   resourceapi.ResourceSliceSelectorDriver,
			"ResourceSliceSelectorPoolName": resourceapi.ResourceSliceSelectorPoolName,
		}[e.Sel.Name]
	}
	return ""
}
