package metricnames

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stormglass/stormglass/internal/metricopts"
)

// declaration is the declaration of a metric in the source of a component.
type declaration struct {
	Type   string    // counter, gauge or histogram
	Labels []string  // in the order of the declaration
	Edges  []float64 // upper bounds of a histogram's buckets
	// Deprecated is the version that deprecated the metric, or "". A deprecated alpha metric is no longer exposed by
	// default.
	Deprecated string
}

// modules lists the modules whose files readSources can read. go.mod pins their versions.
var modules = []string{
	"k8s.io/apiextensions-apiserver", "k8s.io/apiserver", "k8s.io/cloud-provider", "k8s.io/component-base", "k8s.io/dynamic-resource-allocation", "k8s.io/endpointslice", "k8s.io/kubernetes",
	"go.etcd.io/etcd/server/v3", "github.com/stormglass/stormglass",
}

// readSources returns the metrics that each file declares, by file and by metric name. A file is given by the import
// path of its package ("k8s.io/apiserver/pkg/.../metrics.go"); empty names are skipped. The test fails if a file cannot
// be parsed.
func readSources(t *testing.T, files ...string) map[string]map[string]declaration {
	t.Helper()
	dirs := moduleDirs(t)
	all := map[string]map[string]declaration{}
	for _, file := range files {
		if file == "" || all[file] != nil {
			continue
		}
		for module, dir := range dirs {
			if rest, ok := strings.CutPrefix(file, module+"/"); ok {
				all[file] = declarations(t, filepath.Join(dir, rest))
			}
		}
		if all[file] == nil {
			t.Fatalf("%s is in none of the modules %v", file, modules)
		}
	}
	return all
}

func moduleDirs(t *testing.T) map[string]string {
	t.Helper()
	out, err := exec.Command("go", append([]string{"list", "-m", "-f", "{{.Path}} {{.Dir}}"}, modules...)...).Output()
	if err != nil {
		t.Fatalf("go list -m: %v", err)
	}
	dirs := map[string]string{}
	for line := range strings.Lines(string(out)) {
		module, dir, _ := strings.Cut(strings.TrimSpace(line), " ")
		dirs[module] = dir
	}
	return dirs
}

// source maps the names that a file declares to their values. Declarations of metrics refer to these names.
type source map[string]ast.Expr

// declarations returns the metrics that a file declares by calls such as NewCounterVec(&CounterOpts{...}, []string{...}).
func declarations(t *testing.T, file string) map[string]declaration {
	t.Helper()
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	s := source{}
	ast.Inspect(parsed, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.ValueSpec:
			for i, v := range n.Values {
				s[n.Names[i].Name] = v
			}
		case *ast.AssignStmt:
			if name, ok := n.Lhs[0].(*ast.Ident); ok && len(n.Rhs) == 1 {
				s[name.Name] = n.Rhs[0]
			}
		}
		return true
	})
	all := map[string]declaration{}
	ast.Inspect(parsed, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok || len(call.Args) == 0 {
			return true
		}
		for _, kind := range []string{"Counter", "Gauge", "Histogram"} {
			if !strings.HasPrefix(last(call.Fun), "New"+kind) {
				continue
			}
			name, m := s.options(call.Args[0])
			m.Type = strings.ToLower(kind)
			if len(call.Args) > 1 {
				m.Labels = s.strings(call.Args[1])
			}
			all[name] = m
		}
		return true
	})
	return all
}

// options parses the options of a metric's declaration. It returns the full name of the metric and a declaration with
// the fields that the options set.
func (s source) options(e ast.Expr) (name string, m declaration) {
	if ref, ok := e.(*ast.UnaryExpr); ok {
		e = ref.X
	}
	if call, ok := e.(*ast.CallExpr); ok {
		switch last(call.Fun) {
		case "Latency":
			return s.text(call.Args[0]), declaration{Edges: metricopts.Latency("", "").Buckets}
		case "Histogram":
			return s.text(call.Args[0]), declaration{Edges: s.edges(call.Args[2])}
		}
	}
	literal, ok := e.(*ast.CompositeLit)
	if !ok {
		return "", m
	}
	parts := map[string]string{}
	for _, element := range literal.Elts {
		field, ok := element.(*ast.KeyValueExpr)
		if !ok {
			continue
		}
		key := field.Key.(*ast.Ident).Name
		if key == "Buckets" {
			m.Edges = s.edges(field.Value)
		}
		parts[key] = s.text(field.Value)
	}
	for _, part := range []string{parts["Namespace"], parts["Subsystem"], parts["Name"]} {
		if part != "" {
			name += "_" + part
		}
	}
	m.Deprecated = parts["DeprecatedVersion"]
	return strings.TrimPrefix(name, "_"), m
}

// text returns the value of a string literal, or of a name that the file declares as a string literal. For any other
// expression it returns "".
func (s source) text(e ast.Expr) string {
	switch e := s.value(e).(type) {
	case *ast.BasicLit:
		text, _ := strconv.Unquote(e.Value)
		return text
	}
	return ""
}

func (s source) value(e ast.Expr) ast.Expr {
	if name, ok := e.(*ast.Ident); ok {
		return s[name.Name]
	}
	return e
}

func (s source) strings(e ast.Expr) []string {
	literal, ok := s.value(e).(*ast.CompositeLit)
	if !ok {
		return nil
	}
	var all []string
	for _, element := range literal.Elts {
		all = append(all, s.text(element))
	}
	return all
}

func (s source) edges(e ast.Expr) []float64 {
	number := func(e ast.Expr) float64 {
		if literal, ok := e.(*ast.BasicLit); ok {
			v, _ := strconv.ParseFloat(literal.Value, 64)
			return v
		}
		return 0
	}
	var all []float64
	switch e := s.value(e).(type) {
	case *ast.CompositeLit:
		for _, element := range e.Elts {
			all = append(all, number(element))
		}
	case *ast.CallExpr:
		if last(e.Fun) != "ExponentialBuckets" {
			return nil
		}
		// Calculate edges as client_golang does, so that each edge is exactly the same float.
		edge := number(e.Args[0])
		for range int(number(e.Args[2])) {
			all = append(all, edge)
			edge *= number(e.Args[1])
		}
	}
	return all
}
