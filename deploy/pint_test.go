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

// pint runs pint with alerts/.pint.hcl on files. It returns the findings and the number of rules that pint has read.
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

// pint reads all rules and accepts them, as rule files and as manifests.
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

// pint refuses rules with typical mistakes, each by the right check. It accepts the first rule, which is correct.
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

// suppression matches a comment that disables a check of pint.
var suppression = regexp.MustCompile(`#[ \t]*pint[ \t]+(\S+)[ \t]*(.*)`)

// Each suppression is for one check of one rule, has a reason in the line above, and suppresses a finding that pint
// would report.
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

// ruleFiles returns the paths, relative to the root, of the rule files in a directory of the repository.
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
