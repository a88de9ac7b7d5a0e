package render_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/stormglass/stormglass/alerts"
	"github.com/stormglass/stormglass/alerts/render"
	"github.com/stormglass/stormglass/deploy/deploytest"
)

// kubePrometheusStack returns the job names in the Helm chart kube-prometheus-stack.
func kubePrometheusStack() map[string]string {
	return map[string]string{"kube-apiserver": "apiserver", "etcd": "kube-etcd", "kube-scheduler": "kube-scheduler", "kube-controller-manager": "kube-controller-manager"}
}

// production returns options for a Prometheus server that scrapes several clusters and no load generator.
func production() render.Options {
	jobs := kubePrometheusStack()
	jobs[render.Generator] = ""
	return render.Options{Jobs: jobs, ClusterLabel: "k8s_cluster"}
}

func bundle(t *testing.T, o render.Options) render.Bundle {
	t.Helper()
	b, err := render.Render(o)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// write writes a bundle into a directory.
func write(t *testing.T, b render.Bundle) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range b.Files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// promtool accepts the rendered rules. The unit tests of the rules pass if their series have the job names and the
// cluster label of the other Prometheus server.
func TestPromtoolAcceptsRenderedRules(t *testing.T) {
	promtool := deploytest.Tool(t, deploytest.Promtool)
	for name, o := range map[string]render.Options{
		"production": production(),
		"selected":   {Jobs: kubePrometheusStack(), Selector: `tier="prod", env!~"dev|test"`},
		"managed":    {Jobs: map[string]string{"kube-apiserver": "apiserver", "etcd": "", "kube-scheduler": "", "kube-controller-manager": "", "cloud-controller-manager": "", "loadgen": ""}},
	} {
		t.Run(name, func(t *testing.T) {
			dir := write(t, bundle(t, o))
			rules, err := filepath.Glob(filepath.Join(dir, "rules", "*.yaml"))
			if err != nil || len(rules) == 0 {
				t.Fatal(rules, err)
			}
			if out, err := deploytest.Run(t, dir, promtool, append([]string{"check", "rules", "--lint=all", "--lint-fatal"}, rules...)...); err != nil {
				t.Errorf("%v\n%s", err, out)
			}
			if name == "managed" { // the tests need the other components
				return
			}
			tests := renamedTests(t, dir, o)
			if out, err := deploytest.Run(t, dir, promtool, append([]string{"test", "rules"}, tests...)...); err != nil {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}

// renamedTests writes the unit tests of the rules to dir, with the names of another Prometheus server in their series.
// It returns the paths of the tests.
func renamedTests(t *testing.T, dir string, o render.Options) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(deploytest.Root(t), "alerts", "tests", "*.yaml"))
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	if err := os.Mkdir(filepath.Join(dir, "tests"), 0o755); err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, file := range files {
		name := filepath.Base(file)
		if _, err := os.Stat(filepath.Join(dir, "rules", name)); err != nil {
			if name != "loadgen.yaml" {
				t.Errorf("%s: the bundle has no rules of this file", name)
			}
			continue
		}
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		text := strings.ReplaceAll(string(data), "rule_files: [../", "rule_files: [../rules/")
		for ours, theirs := range o.Jobs {
			if theirs != "" {
				text = regexp.MustCompile(`\bjob="`+ours+`"`).ReplaceAllString(text, `job="renamed-`+theirs+`"`)
			}
		}
		text = strings.ReplaceAll(text, `job="renamed-`, `job="`)
		if o.ClusterLabel != "" {
			text = regexp.MustCompile(`\bcluster="`).ReplaceAllString(text, o.ClusterLabel+`="`)
		}
		if o.Selector != "" { // only scraped series begin with a plain metric name
			text = regexp.MustCompile(`(series: '[a-zA-Z_]+\{)`).ReplaceAllString(text, `${1}tier="prod", `)
		}
		path := filepath.Join(dir, "tests", name)
		if o.Selector != "" {
			text = withLabelInResults(t, text)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		all = append(all, path)
	}
	return all
}

// withLabelInResults removes the label tier from the alerts that the tests query. All series have this label, but only
// some rules keep it.
func withLabelInResults(t *testing.T, text string) string {
	t.Helper()
	return regexp.MustCompile(`expr: '(ALERTS[^']*)'`).ReplaceAllString(text, `expr: 'label_replace(sum without (tier) ($1), "__name__", "ALERTS", "", "")'`)
}

// A rule, a panel or a link that is only about left-out components is removed. If it is also about other components, it
// remains for these.
func TestLeftOut(t *testing.T) {
	b := bundle(t, production())
	all := string(slices.Concat(slices.Collect(maps.Values(b.Files))...))
	for _, gone := range []string{`job="loadgen`, `job=\"loadgen`, `|loadgen`, "stormglass_", "GeneratorSaturated", "/d/stormglass-loadgen", "/d/stormglass-run", `job=\"etcd\"`, `"kube-apiserver"`} {
		if strings.Contains(all, gone) {
			t.Errorf("the bundle still has %s", gone)
		}
	}
	for _, want := range []string{"alert GeneratorSaturated", "dashboard stormglass-loadgen"} {
		if name := strings.Fields(want)[1]; !slices.ContainsFunc(b.LeftOut, func(s string) bool { return strings.HasSuffix(s, name) }) {
			t.Errorf("LeftOut does not contain %s: %q", want, b.LeftOut)
		}
	}
	targets := string(b.Files["rules/targets.yaml"])
	if want := `up{job=~"apiserver|kube-etcd|kube-scheduler|kube-controller-manager"} == 0`; !strings.Contains(targets, want) {
		t.Errorf("%s is missing in\n%s", want, targets)
	}

	managed := bundle(t, render.Options{Jobs: map[string]string{"etcd": "", "kube-scheduler": "", "kube-controller-manager": "", "cloud-controller-manager": "", "loadgen": ""}})
	targets = string(managed.Files["rules/targets.yaml"])
	if strings.Contains(targets, "etcd_") || strings.Contains(targets, `job="etcd"`) || !strings.Contains(targets, `expr: absent(up{job="kube-apiserver"})`) {
		t.Errorf("remaining rules for absent targets:\n%s", targets)
	}
	if managed.Files["rules/etcd.yaml"] != nil || managed.Files["dashboards/stormglass-etcd.json"] != nil || managed.Files["dashboards/stormglass-apiserver.json"] == nil {
		t.Errorf("files %v", slices.Sorted(maps.Keys(managed.Files)))
	}
}

// Without options, the rendered rules equal the built-in rules.
func TestNothingElseChanges(t *testing.T) {
	b := bundle(t, render.Options{})
	root := deploytest.Root(t)
	for _, dir := range []struct{ ours, theirs string }{{"alerts/*.yaml", "rules"}, {"dashboards/json/*.json", "dashboards"}} {
		files, err := filepath.Glob(filepath.Join(root, filepath.FromSlash(dir.ours)))
		if err != nil || len(files) == 0 {
			t.Fatal(files, err)
		}
		for _, file := range files {
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			name := dir.theirs + "/" + filepath.Base(file)
			var got []string
			for line := range strings.Lines(string(b.Files[name])) {
				got = append(got, strings.TrimSpace(line))
			}
			for line := range strings.Lines(string(want)) {
				if line = strings.TrimSpace(line); line != "" && !slices.Contains(got, line) {
					t.Errorf("%s has lost %q", name, line)
				}
			}
		}
	}
}

// The runbook_url of every alert is its section below the given base.
func TestRunbooks(t *testing.T) {
	o := production()
	o.RunbookBase = "https://example.org/docs/"
	n := 0
	for name, text := range bundle(t, o).Files {
		if !strings.HasPrefix(name, "rules/") {
			continue
		}
		for _, rule := range alertsOf(t, text) {
			n++
			if got, want := rule.Annotations["runbook_url"], "https://example.org/docs/"+alerts.Runbook(rule.Alert); got != want {
				t.Errorf("%s leads to %s, want %s", rule.Alert, got, want)
			}
			for key, text := range rule.Annotations {
				if strings.Contains(text, "$labels.cluster") {
					t.Errorf("%s: %s names the old label: %s", rule.Alert, key, text)
				}
			}
		}
	}
	if n < 40 {
		t.Errorf("the bundle has only %d alerts", n)
	}
}

type alertRule struct {
	Alert       string            `yaml:"alert"`
	Expr        string            `yaml:"expr"`
	Annotations map[string]string `yaml:"annotations"`
}

func alertsOf(t *testing.T, text []byte) (all []alertRule) {
	t.Helper()
	var file struct {
		Groups []struct {
			Rules []alertRule `yaml:"rules"`
		} `yaml:"groups"`
	}
	if err := yaml.Unmarshal(text, &file); err != nil {
		t.Fatal(err)
	}
	for _, g := range file.Groups {
		for _, r := range g.Rules {
			if r.Alert != "" {
				all = append(all, r)
			}
		}
	}
	return all
}

// Dashboards are valid JSON, their queries use the other names, and every remaining panel has a query.
func TestDashboards(t *testing.T) {
	o := production()
	o.Selector = `tier="prod"`
	n := 0
	for name, text := range bundle(t, o).Files {
		if !strings.HasPrefix(name, "dashboards/") {
			continue
		}
		n++
		var d struct {
			Panels []struct {
				Type, Title string
				Targets     []struct{ Expr string }
			}
			Templating struct {
				List []struct{ Name, Definition string }
			}
		}
		if err := json.Unmarshal(text, &d); err != nil {
			t.Fatal(err)
		}
		for _, p := range d.Panels {
			if p.Type != "row" && len(p.Targets) == 0 {
				t.Errorf("%s: panel %s has no query", name, p.Title)
			}
			for _, q := range p.Targets {
				if strings.Contains(q.Expr, `cluster=~"$cluster"`) && !strings.Contains(q.Expr, `k8s_cluster=~"$cluster"`) {
					t.Errorf("%s: panel %s: the cluster's label is the old one: %s", name, p.Title, q.Expr)
				}
				if strings.Contains(q.Expr, "job=") && !strings.Contains(q.Expr, `tier="prod"`) && !strings.Contains(q.Expr, ":") {
					t.Errorf("%s: panel %s: the selector is missing: %s", name, p.Title, q.Expr)
				}
			}
		}
		for _, v := range d.Templating.List {
			if v.Name == "cluster" && v.Definition != "label_values(up, k8s_cluster)" {
				t.Errorf("%s: the clusters to choose from: %s", name, v.Definition)
			}
		}
	}
	if n < 5 {
		t.Errorf("the bundle has only %d dashboards", n)
	}
}

// Invalid options are refused in one line.
func TestRefused(t *testing.T) {
	for want, o := range map[string]render.Options{
		`no rule and no dashboard uses job "apiserver"`: {Jobs: map[string]string{"apiserver": "kube-apiserver"}},
		`job "x" is given as the job of etcd and`:       {Jobs: map[string]string{"etcd": "x", "kube-scheduler": "x"}},
		"every job is left out": {Jobs: map[string]string{"etcd": "", "kube-scheduler": "", "kube-controller-manager": "", "cloud-controller-manager": "",
			"loadgen": "", "kube-apiserver": ""}},
		`cluster label "a-b" is not a label name`:    {ClusterLabel: "a-b"},
		`cluster label "job" already has another`:    {ClusterLabel: "job"},
		`is not a list of matchers`:                  {Selector: "tier"},
		`matches job, which the rules already match`: {Selector: `job="x"`},
		`runbook base "docs" is not a URL`:           {RunbookBase: "docs"},
		`"Mine" is not a valid name in Kubernetes`:   {Namespace: "Mine"},
		`"a\nb" is not a valid name in Kubernetes (`: {Release: "a\nb"},
	} {
		if _, err := render.Render(o); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// Odd names of jobs are quoted, as values and as parts of regular expressions.
func TestOddNames(t *testing.T) {
	b := bundle(t, render.Options{Jobs: map[string]string{"etcd": `serviceMonitor/a.b/etcd|"x"`}})
	text := string(b.Files["rules/targets.yaml"]) + string(b.Files["rules/etcd.yaml"])
	for _, want := range []string{`job="serviceMonitor/a.b/etcd|\"x\""`, `|serviceMonitor/a\\.b/etcd\\|\"x\"|`} {
		if !strings.Contains(text, want) {
			t.Errorf("%s is missing in\n%s", want, text)
		}
	}
	if len(alertsOf(t, b.Files["rules/etcd.yaml"])) == 0 {
		t.Error(fmt.Sprint("no alerts: ", text))
	}
}

// droppedBuckets matches the bucket bounds that kube-prometheus-stack 86.1.1 drops from the metrics of API servers
// (kubeApiServer.serviceMonitor.metricRelabelings). bucketOf matches selectors of the affected metrics.
var (
	droppedBuckets = regexp.MustCompile(`^(0\.15|0\.2|0\.3|0\.35|0\.4|0\.45|0\.6|0\.7|0\.8|0\.9|1\.25|1\.5|1\.75|2|3|3\.5|4|4\.5|6|7|8|9|15|20|40|45|50)(\.0)?$`)
	bucketOf       = regexp.MustCompile(`\b(?:etcd_request|apiserver_request_slo|apiserver_request_sli|apiserver_request)_duration_seconds_bucket\{[^}]*\ble=~?"([^"]*)"`)
)

// The rules read no bucket that kube-prometheus-stack drops.
func TestChartKeepsTheBuckets(t *testing.T) {
	n := 0
	for name, text := range bundle(t, production()).Files {
		if !strings.HasPrefix(name, "rules/") {
			continue
		}
		for _, m := range bucketOf.FindAllStringSubmatch(string(text), -1) {
			for edge := range strings.SplitSeq(m[1], "|") {
				n++
				if droppedBuckets.MatchString(strings.TrimSuffix(edge, `(\\.0)?`)) {
					t.Errorf("%s reads the bucket %s: %s", name, edge, m[0])
				}
			}
		}
	}
	if n == 0 {
		t.Error("no rule reads a bucket: is the pattern right?")
	}
}
