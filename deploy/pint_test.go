package deploy_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stormglass/stormglass/alerts"
	"github.com/stormglass/stormglass/deploy/deploytest"
)

// finding is one problem that pint reports, of any severity.
type finding struct {
	Path    string `json:"path"`
	Check   string `json:"reporter"`
	Problem string `json:"problem"`
	Details string `json:"details"`
	Lines   []int  `json:"lines"`
}

// entries matches pint's message about the number of rules that it has read.
var entries = regexp.MustCompile(`msg="Checking Prometheus rules" entries=(\d+)`)

// pint runs pint on files with alerts/.pint.hcl, and returns its findings and the
// number of rules it read.
func pint(t *testing.T, files ...string) (read string, found []finding) {
	t.Helper()
	report := filepath.Join(t.TempDir(), "pint.json")
	out, failed := deploytest.Run(t, deploytest.Root(t), deploytest.Tool(t, deploytest.Pint), append([]string{
		"--no-color", "--offline", "--show-duplicates", "--config", "alerts/.pint.hcl",
		"lint", "--min-severity", "info", "--fail-on", "info", "--json", report}, files...)...)
	text, err := os.ReadFile(report)
	if err == nil {
		err = json.Unmarshal(text, &found)
	}
	said := entries.FindStringSubmatch(out)
	if err != nil || said == nil || (failed != nil) != (len(found) > 0) {
		t.Fatalf("pint: %v, report: %v, with %d findings\n%s", failed, err, len(found), out)
	}
	return said[1], found
}

// pint accepts the rules, as files and as manifests, having read all of them.
func TestPintAcceptsTheRules(t *testing.T) {
	loaded, err := alerts.Load()
	if err != nil {
		t.Fatal(err)
	}
	rules := 0
	for _, g := range loaded {
		rules += len(g.Rules)
	}
	for _, dir := range []string{"alerts", "deploy/kubernetes/rules"} {
		read, found := pint(t, ruleFiles(t, dir)...)
		if want := fmt.Sprint(rules); read != want {
			t.Errorf("pint read %s rules in %s, want %s", read, dir, want)
		}
		for _, f := range found {
			t.Errorf("%s:%d: %s: %s\n%s", f.Path, f.Lines[0], f.Check, f.Problem, f.Details)
		}
	}
}

// pint refuses rules that a reviewer should refuse, for the right reason; the
// first rule is sound.
func TestPintRefuses(t *testing.T) {
	dir := t.TempDir()
	var files, want []string
	for i, rule := range []struct{ check, expr, summary string }{
		{"", `sum by (cluster, job) (up{job="etcd"}) == 0`, "{{ $labels.job }} is down"},
		{"alerts/comparison", `up{job="etcd"}`, "fires for every value"},
		{"alerts/template", `sum by (cluster, job) (up{job="etcd"}) == 0`, "{{ $labels.instance }}, which is summed away"},
		{"promql/aggregate", `sum by (job) (up{job="etcd"}) == 0`, "one cluster hides another"},
		{"promql/fragile", `topk(3, up{job="etcd"}) == 0`, "other series at each evaluation"},
		{"promql/impossible", `sum by (cluster, job) (up{job="etcd"}) == 0 and on (instance) up{job="etcd"}`, "no instance is left to match by"},
		{"promql/regexp", `up{job=~"etcd"} == 0`, "no pattern"},
		{"promql/selector", `up == 0`, "a target of anybody"},
		{"promql/syntax", `up{job="etcd"} = 0`, "no PromQL"},
	} {
		file := filepath.Join(dir, fmt.Sprintf("%d.yaml", i))
		text := fmt.Sprintf("groups:\n  - name: refused\n    rules:\n      - alert: Refused\n        expr: %s\n        annotations: {summary: '%s'}\n", rule.expr, rule.summary)
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		files = append(files, file)
		if rule.check != "" {
			want = append(want, filepath.Base(file)+" "+rule.check)
		}
	}
	_, found := pint(t, files...)
	if got := checks(found); !slices.Equal(got, want) {
		t.Errorf("refused:\n%q, want\n%q", got, want)
	}
}

// suppression is a comment that pint obeys.
var suppression = regexp.MustCompile(`#[ \t]*pint[ \t]+(\S+)[ \t]*(.*)`)

// Each suppression is of one check of one rule, has a reason in the line above,
// and hides a real finding of pint.
func TestPintSuppressionsHaveReasons(t *testing.T) {
	dir := t.TempDir()
	var files, want []string
	for _, name := range ruleFiles(t, "alerts") {
		text, err := os.ReadFile(filepath.Join(deploytest.Root(t), name))
		if err != nil {
			t.Fatal(err)
		}
		lines := strings.Split(string(text), "\n")
		for i, line := range lines {
			comment := suppression.FindStringSubmatch(line)
			if comment == nil {
				continue
			}
			if comment[1] != "disable" {
				t.Errorf("%s:%d: pint %s applies to more than one check of one rule", name, i+1, comment[1])
			}
			if i == 0 || !strings.HasPrefix(strings.TrimSpace(lines[i-1]), "# ") || suppression.MatchString(lines[i-1]) {
				t.Errorf("%s:%d: the comment above gives no reason", name, i+1)
			}
			want = append(want, filepath.Base(name)+" "+comment[2])
		}
		file := filepath.Join(dir, filepath.Base(name))
		if err := os.WriteFile(file, suppression.ReplaceAll(text, []byte("#")), 0o644); err != nil {
			t.Fatal(err)
		}
		files = append(files, file)
	}
	slices.Sort(want)
	_, found := pint(t, files...)
	if got := checks(found); !slices.Equal(got, want) {
		t.Errorf("without its suppressions pint finds\n%q, but the comments suppress\n%q", got, want)
	}
}

// ruleFiles is the files of a folder of the repository that hold rules, as seen
// from its root.
func ruleFiles(t *testing.T, dir string) []string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(deploytest.Root(t), dir, "*.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, file := range found {
		if name := filepath.Base(file); name != "kustomization.yaml" {
			names = append(names, dir+"/"+name)
		}
	}
	return names
}

// checks formats findings as "FILE CHECK", sorted.
func checks(found []finding) []string {
	var all []string
	for _, f := range found {
		all = append(all, filepath.Base(f.Path)+" "+f.Check)
	}
	slices.Sort(all)
	return all
}
