package gate

import (
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stormglass/stormglass/loadgen/scenario"
)

var update = flag.Bool("update", false, "rewrite docs/reference/objectives.md")

// What is wrong with a gate is said before anything starts, in one line with
// file, line, field and a hint.
func TestCompileErrors(t *testing.T) {
	const at = "lab.yaml:19: gates.g."
	for gate, want := range map[string]string{
		"objective: mutating-latencies, max: 1s":           `objective: unknown objective "mutating-latencies" (did you mean "mutating-latency"?)`,
		"objective: blah, max: 1s":                         `objective: unknown objective "blah" (objectives: mutating-latency, `,
		"objective: mutating-latency, max: 5%":             "max: 5% is not in seconds, the unit of mutating-latency (write it as 1s or 250ms)",
		"objective: achieved, min: 1s":                     "min: 1s is not in ratio, the unit of achieved (write it as 5% or 0.05)",
		"expr: 'sum(rate(x[5m])', max: 1":                  "expr: ",
		"expr: 'x[5m]', max: 1":                            "expr: it gives a range vector, not a number (it is PromQL",
		`expr: '{__name__=~"x.*"}', max: 1`:                `expr: {__name__=~"x.*"} names no metric`,
		"expr: '1 + 1', max: 1":                            "expr: it reads no metric",
		"objective: request-latency, load: patsh, max: 1s": `load: no load "patsh" for objective request-latency (loads it can judge: patch, news)`,
		"objective: request-latency, load: crowd, max: 1s": `load: no load "crowd" for objective request-latency`,
		"objective: watch-lost, max: 0, over: [calm]":      "over: nothing for objective watch-lost runs in calm",
		"objective: wal-fsync, load: patch, max: 1s":       "load: objective wal-fsync is not about a load",
	} {
		_, err := Compile(parse(t, "{name: g, "+gate+"}"))
		if err == nil || !strings.HasPrefix(err.Error(), at+want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s:\n got %v\nwant %s%s", gate, err, at, want)
		}
	}
	bare, err := scenario.Parse("bare.yaml", []byte("apiVersion: stormglass/v1alpha1\nkind: Scenario\nname: bare\nphases: [{name: p, for: 1s}]\ngates:\n"+
		"  - {name: a, objective: missed-heartbeats, max: 0}\n  - {name: b, objective: time-to-recover, max: 1m}\n"), nil)
	if err != nil {
		t.Fatal(err)
	}
	_, err = Compile(bare)
	want := "bare.yaml:6: gates.a.objective: there are no simulated nodes (set nodes.count)\n" +
		"bare.yaml:7: gates.b.objective: no node fails in this scenario (add faults: [{kind: nodeFailure, fraction: 0.3}] to a phase)"
	if err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
}

func TestCatalogueCompiles(t *testing.T) {
	for _, name := range scenario.Names() {
		s, err := scenario.Read(name, nil)
		if err != nil {
			t.Fatal(err)
		}
		seen := map[string]bool{} // gates that some way to run it judges
		for _, s := range append(s.AllVariants(), s) {
			gates, err := Compile(s)
			if err != nil || len(gates) == 0 {
				t.Errorf("%s, variant %q: %d gates: %v", name, s.Variant, len(gates), err)
			}
			for _, g := range gates {
				seen[g.Name] = true
			}
		}
		if len(seen) != len(s.Gates) {
			t.Errorf("%s: %d of %d gates are judged in one variant or another: %v", name, len(seen), len(s.Gates), seen)
		}
	}
}

// The recorder is told of every metric that gates read.
func TestFamilies(t *testing.T) {
	got := Families(parse(t, "{name: a, objective: wal-fsync-slow, max: 1%}", "{name: b, expr: 'max(my_own_metric)', max: 1}",
		"{name: c, expr: 'max(my_own_metric) / scalar(other_total)', max: 1}"))
	want := []string{"etcd_disk_wal_fsync_duration_seconds_bucket", "etcd_disk_wal_fsync_duration_seconds_count", "my_own_metric", "other_total"}
	if !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestReferenceIsWhatTheProgramKnows(t *testing.T) {
	file := filepath.Join("..", "..", "..", "..", "docs", "reference", "objectives.md")
	if *update {
		if err := os.WriteFile(file, []byte(Reference()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if string(text) != Reference() {
		t.Error("docs/reference/objectives.md is not what the program knows; read what changed and run: go test ./loadgen/internal/judge/gate -update")
	}
	for _, o := range Objectives() {
		if o.Doc == "" || o.Source == "" || o.Default == "" || (o.Expr == "") == (o.measure == nil) {
			t.Errorf("%s is not told in full", o.Name)
		}
		limit, bound, ok := strings.Cut(o.Default, ": ")
		var b scenario.Bound
		if err := b.UnmarshalText([]byte(bound)); err != nil || !ok || !b.Fits(o.Unit) || limit != "max" && limit != "min" {
			t.Errorf("%s: the default bound %q does not fit: %v", o.Name, o.Default, err)
		}
	}
}
