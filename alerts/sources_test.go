package alerts

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stormglass/stormglass/loadgen/traffic"
)

// declaration is a metric as the source of a component declares it.
type declaration struct {
	kind   string // counter, gauge or histogram
	labels []string
	edges  []float64 // of a histogram's buckets
	// deprecated is the version since which it is: an alpha metric is hidden at once.
	deprecated string
}

// TestFamilies holds Families against the source of the very modules that
// go.mod pins: a rename or a lost label upstream fails here, not in an alert
// that has gone quiet.
func TestFamilies(t *testing.T) {
	sources := readSources(t)
	for _, f := range Families() {
		if f.Source == "" {
			continue
		}
		d, ok := sources[f.Source][f.Name]
		if !ok {
			t.Errorf("%s does not declare %s", f.Source, f.Name)
			continue
		}
		if d.kind != f.Type {
			t.Errorf("%s is a %s in %s, a %s in Families", f.Name, d.kind, f.Source, f.Type)
		}
		if d.deprecated != "" {
			t.Errorf("%s is deprecated since %s", f.Name, d.deprecated)
		}
		if f.Type == "histogram" && d.edges == nil {
			t.Errorf("%s: the edges of the buckets of %s cannot be read", f.Source, f.Name)
		}
		if !slices.Equal(d.labels, f.Labels) {
			t.Errorf("%s has the labels %q in %s, %q in Families", f.Name, d.labels, f.Source, f.Labels)
		}
	}
}

// readSources is what each file that Families names declares, by the name of the metric.
func readSources(t *testing.T) map[string]map[string]declaration {
	t.Helper()
	dirs := moduleDirs(t, "k8s.io/apiserver", "k8s.io/component-base", "k8s.io/kubernetes", "go.etcd.io/etcd/server/v3", "github.com/stormglass/stormglass")
	all := map[string]map[string]declaration{}
	for _, f := range Families() {
		if f.Source == "" || all[f.Source] != nil {
			continue
		}
		for module, dir := range dirs {
			if rest, ok := strings.CutPrefix(f.Source, module+"/"); ok {
				all[f.Source] = declarations(t, filepath.Join(dir, rest))
			}
		}
	}
	return all
}

func moduleDirs(t *testing.T, modules ...string) map[string]string {
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

// source is the values that a file gives names to: metrics are declared with them.
type source map[string]ast.Expr

// declarations reads calls such as NewCounterVec(&CounterOpts{...}, []string{...}).
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
			if !strings.HasPrefix(called(call), "New"+kind) {
				continue
			}
			name, d := s.options(call.Args[0])
			d.kind = strings.ToLower(kind)
			if len(call.Args) > 1 {
				d.labels = s.strings(call.Args[1])
			}
			all[name] = d
		}
		return true
	})
	return all
}

// called is the name of the function, without its package.
func called(call *ast.CallExpr) string {
	switch f := call.Fun.(type) {
	case *ast.SelectorExpr:
		return f.Sel.Name
	case *ast.Ident:
		return f.Name
	}
	return ""
}

// options reads the full name of a metric, and what its options say of it.
func (s source) options(e ast.Expr) (name string, d declaration) {
	if ref, ok := e.(*ast.UnaryExpr); ok {
		e = ref.X
	}
	if call, ok := e.(*ast.CallExpr); ok && called(call) == "HistogramOpts" {
		return s.text(call.Args[0]), declaration{edges: traffic.HistogramOpts("", "").Buckets}
	}
	literal, ok := e.(*ast.CompositeLit)
	if !ok {
		return "", d
	}
	parts := map[string]string{}
	for _, element := range literal.Elts {
		field, ok := element.(*ast.KeyValueExpr)
		if !ok {
			continue
		}
		key := field.Key.(*ast.Ident).Name
		if key == "Buckets" {
			d.edges = s.edges(field.Value)
		}
		parts[key] = s.text(field.Value)
	}
	for _, part := range []string{parts["Namespace"], parts["Subsystem"], parts["Name"]} {
		if part != "" {
			name += "_" + part
		}
	}
	d.deprecated = parts["DeprecatedVersion"]
	return strings.TrimPrefix(name, "_"), d
}

// text is the string that e is or names, or "".
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
		if called(e) != "ExponentialBuckets" {
			return nil
		}
		// As client_golang reckons them, so that each edge is the same float.
		edge := number(e.Args[0])
		for range int(number(e.Args[2])) {
			all = append(all, edge)
			edge *= number(e.Args[1])
		}
	}
	return all
}
