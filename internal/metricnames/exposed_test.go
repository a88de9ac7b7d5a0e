package metricnames

import (
	"flag"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite exposed.txt")

// TestExposedIsWhatTheSourceDeclares keeps exposed.txt equal to the metrics that the packages of both programs declare.
func TestExposedIsWhatTheSourceDeclares(t *testing.T) {
	names := map[string]bool{}
	for _, files := range packages(t) {
		declared(t, files, names)
	}
	text := "# Metrics that the packages of controlplane and loadgen declare. *_x: one whose name ends so.\n" +
		"# go test ./internal/metricnames -run Exposed -update\n" + strings.Join(slices.Sorted(maps.Keys(names)), "\n") + "\n"
	if *update {
		if err := os.WriteFile("exposed.txt", []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if have, err := os.ReadFile("exposed.txt"); err != nil || string(have) != text {
		t.Errorf("exposed.txt differs from the source (%v): run the test with -update", err)
	}
}

func TestExposedKnowsSeries(t *testing.T) {
	e := ReadExposed()
	for _, name := range []string{
		"apiserver_request_duration_seconds_bucket", "apiserver_request_sli_duration_seconds_count", "etcd_disk_wal_fsync_duration_seconds_sum", "etcd_server_has_leader",
		"scheduler_pending_pods", "workqueue_depth", "rest_client_requests_total", "go_goroutines", "process_cpu_seconds_total", "up", "stormglass_requests_total",
		"node_collector_evictions_total", "grpc_server_handled_total", "etcd_network_peer_round_trip_time_seconds_bucket", "apiserver_storage_objects",
	} {
		if !e.Has(name) {
			t.Errorf("%s is not known", name)
		}
	}
	for _, name := range []string{"apiserver_request_duration_second_bucket", "etcd_has_leader", "node_cpu_seconds_total", "node_memory_MemTotal_bytes", "x"} {
		if e.Has(name) {
			t.Errorf("%s is known", name)
		}
	}
	// Every recorded metric is exposed.
	for _, r := range rows() {
		if !strings.HasSuffix(r.Name, "*") && !e.Has(r.Name) {
			t.Errorf("%s of the table is not known", r.Name)
		}
	}
}

// packages returns the Go files of each package outside the standard library that is linked into the programs.
func packages(t *testing.T) [][]string {
	t.Helper()
	cmd := exec.Command("go", "list", "-deps", "-f", `{{if not .Standard}}{{.Dir}}{{range .GoFiles}}|{{.}}{{end}}{{end}}`, "./cmd/controlplane", "./cmd/loadgen")
	cmd.Dir = "../.."
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	var all [][]string
	for line := range strings.Lines(string(out)) {
		dir, names, ok := strings.Cut(strings.TrimSpace(line), "|")
		if !ok {
			continue
		}
		var files []string
		for name := range strings.SplitSeq(names, "|") {
			files = append(files, filepath.Join(dir, name))
		}
		all = append(all, files)
	}
	return all
}

// declared adds the metrics that a package declares: by options with a Name, by NewDesc and by BuildFQName.
func declared(t *testing.T, files []string, names map[string]bool) {
	t.Helper()
	p := pkg{values: map[string]ast.Expr{}}
	var parsed []*ast.File
	interesting := false
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, word := range []string{"Opts{", "NewDesc(", "BuildFQName(", "metricopts."} {
			interesting = interesting || strings.Contains(string(text), word)
		}
		f, err := parser.ParseFile(token.NewFileSet(), file, text, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		parsed = append(parsed, f)
	}
	if !interesting {
		return
	}
	for _, f := range parsed {
		p.learn(f)
	}
	for _, f := range parsed {
		ast.Inspect(f, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.CompositeLit:
				p.options(n, names)
			case *ast.CallExpr:
				p.call(n, names)
			}
			return true
		})
	}
}

// pkg holds the named values of a package.
type pkg struct{ values map[string]ast.Expr }

func (p pkg) learn(f *ast.File) {
	ast.Inspect(f, func(n ast.Node) bool {
		if spec, ok := n.(*ast.ValueSpec); ok {
			for i, v := range spec.Values {
				p.values[spec.Names[i].Name] = v
			}
		}
		return true
	})
}

func (p pkg) options(n *ast.CompositeLit, names map[string]bool) {
	if !strings.HasSuffix(last(n.Type), "Opts") {
		return
	}
	parts := map[string]ast.Expr{}
	for _, e := range n.Elts {
		if field, ok := e.(*ast.KeyValueExpr); ok {
			parts[last(field.Key)] = field.Value
		}
	}
	if parts["Name"] != nil {
		p.add(names, parts["Namespace"], parts["Subsystem"], parts["Name"])
	}
}

func (p pkg) call(n *ast.CallExpr, names map[string]bool) {
	switch callee := last(n.Fun); {
	case callee == "BuildFQName" && len(n.Args) == 3:
		p.add(names, n.Args...)
	case (callee == "NewDesc" || callee == "Latency" || callee == "Histogram") && len(n.Args) > 0:
		p.add(names, nil, nil, n.Args[0])
	case (callee == "gauge" || callee == "counter") && len(n.Args) > 0: // local helpers, such as in newLedger
		if name, known := p.text(n.Args[0]); known && strings.HasPrefix(name, "stormglass_") {
			names[name] = true
		}
	}
}

// minSuffix is the shortest name ending that identifies a metric.
const minSuffix = 10

// add adds the name that consists of parts. If only the last part is known, it adds a pattern for names with this
// suffix.
func (p pkg) add(names map[string]bool, parts ...ast.Expr) {
	name, known := p.text(parts[2])
	if !known || strings.Trim(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_:") != "" || len(name) < 3 {
		return
	}
	for _, part := range []ast.Expr{parts[1], parts[0]} {
		if part == nil {
			continue
		}
		text, known := p.text(part)
		if !known {
			if len(name) >= minSuffix && strings.Contains(name, "_") { // a shorter suffix would match too many
				names["*_"+name] = true
			}
			return
		}
		if text != "" {
			name = text + "_" + name
		}
	}
	names[name] = true
}

// text returns the string value of an expression: a literal, a name or a sum of these. It returns false if the value is
// unknown.
func (p pkg) text(e ast.Expr) (string, bool) {
	switch e := e.(type) {
	case *ast.BasicLit:
		text, err := strconv.Unquote(e.Value)
		return text, err == nil
	case *ast.Ident:
		if v := p.values[e.Name]; v != nil && v != ast.Expr(e) {
			return p.text(v)
		}
	case *ast.BinaryExpr:
		left, ok1 := p.text(e.X)
		right, ok2 := p.text(e.Y)
		return left + right, ok1 && ok2 && e.Op == token.ADD
	case *ast.ParenExpr:
		return p.text(e.X)
	}
	return "", false
}

func last(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.SelectorExpr:
		return e.Sel.Name
	case *ast.Ident:
		return e.Name
	}
	return ""
}
