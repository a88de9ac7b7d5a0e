package render_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/stormglass/stormglass/alerts/render"
	"github.com/stormglass/stormglass/deploy/deploytest"
)

var update = flag.Bool("update", false, "rewrite the templates of deploy/charts/stormglass-monitoring")

func chartDir(t *testing.T) string {
	return filepath.Join(deploytest.Root(t), "deploy", "charts", "stormglass-monitoring")
}

// The chart's templates match the rules, the dashboards and the scrape objects.
func TestChartIsCurrent(t *testing.T) {
	want, err := render.Chart(os.DirFS(filepath.Join(deploytest.Root(t), "deploy", "kubernetes", "scrape")))
	if err != nil {
		t.Fatal(err)
	}
	templates := filepath.Join(chartDir(t), "templates")
	for _, folder := range []string{"rules", "dashboards", "scrape"} {
		dir := filepath.Join(templates, folder)
		if *update {
			if err := os.RemoveAll(dir); err != nil {
				t.Fatal(err)
			}
			if err := os.Mkdir(dir, 0o755); err != nil {
				t.Fatal(err)
			}
		}
		entries, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			if want[folder+"/"+e.Name()] == nil {
				t.Errorf("%s/%s has no source: run go test ./alerts/render -update", folder, e.Name())
			}
		}
	}
	for name, text := range want {
		file := filepath.Join(templates, filepath.FromSlash(name))
		if *update {
			if err := os.WriteFile(file, text, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		got, err := os.ReadFile(file)
		if err != nil {
			t.Error(err)
		} else if !bytes.Equal(got, text) {
			t.Errorf("%s differs from its source: run go test ./alerts/render -update", name)
		}
	}
}

// installed returns the objects that Helm renders from the chart, decoded, by "Kind name".
func installed(t *testing.T, args ...string) (map[string]chartObject, error) {
	t.Helper()
	out, err := deploytest.Run(t, t.TempDir(), deploytest.Tool(t, deploytest.Helm), append([]string{"template", "mine", chartDir(t), "--namespace", "observability"}, args...)...)
	if err != nil {
		return nil, fmt.Errorf("%w: %s", err, out)
	}
	all := map[string]chartObject{}
	decoder := yaml.NewDecoder(strings.NewReader(out))
	for {
		var o chartObject
		if decoder.Decode(&o) != nil {
			break
		}
		if o.Kind == "" {
			continue
		}
		name := o.Kind + " " + o.Metadata.Name
		if _, twice := all[name]; twice {
			t.Errorf("%s appears twice", name)
		}
		all[name] = o
	}
	return all, nil
}

type chartObject struct {
	Kind     string
	Metadata struct {
		Name, Namespace     string
		Labels, Annotations map[string]string
	}
	Spec any
	Data map[string]string
}

// jobFlags returns Helm flags that set the job names of a bundle as values of the chart.
func jobFlags(jobs map[string]string) (args []string) {
	for _, job := range render.Jobs() {
		theirs, named := jobs[job]
		if !named {
			theirs = job
		}
		args = append(args, "--set-string", "jobs."+job+"="+theirs)
	}
	return args
}

// Helm renders the same files as `loadgen alerts render`, for any set of components and any job names.
func TestChartIsTheBundle(t *testing.T) {
	cases := map[string]render.Options{
		"own names": {},
		"renamed": {Jobs: map[string]string{"kube-apiserver": "monitoring/apiserver", "etcd": "kube-etcd", "kube-scheduler": "s:1", "kube-controller-manager": "cm_2",
			"cloud-controller-manager": "ccm", "loadgen": "storm"}, ClusterLabel: "k8s_cluster", RunbookBase: "https://example.org/docs/"},
	}
	for _, preset := range render.Presets() {
		jobs, err := render.Preset(preset)
		if err != nil {
			t.Fatal(err)
		}
		jobs[render.Generator] = ""
		cases[preset] = render.Options{Jobs: jobs}
	}
	for _, job := range render.Jobs() {
		cases["without "+job] = render.Options{Jobs: map[string]string{job: ""}}
		alone := map[string]string{}
		for _, other := range render.Jobs() {
			if other != job {
				alone[other] = ""
			}
		}
		cases["only "+job] = render.Options{Jobs: alone}
	}
	for name, o := range cases {
		t.Run(name, func(t *testing.T) {
			args := jobFlags(o.Jobs)
			if o.ClusterLabel != "" {
				args = append(args, "--set", "clusterLabel="+o.ClusterLabel, "--set", "runbookBase="+o.RunbookBase)
			}
			got, err := installed(t, args...)
			if err != nil {
				t.Fatal(err)
			}
			want := bundle(t, o)
			n := 0
			for file, text := range want.Files {
				folder, base, _ := strings.Cut(file, "/")
				part := strings.ReplaceAll(strings.TrimSuffix(strings.TrimSuffix(base, ".yaml"), ".json"), "_", "-")
				switch folder {
				case "rules":
					n++
					sameRules(t, file, got["PrometheusRule mine-stormglass-"+part].Spec, text)
				case "dashboards":
					n++
					sameJSON(t, file, got["ConfigMap mine-"+part+"-dashboard"].Data[base], string(text))
				}
			}
			if n != len(got) || n == 0 {
				t.Errorf("%d objects for %d files: %v", len(got), n, slices.Sorted(maps.Keys(got)))
			}
		})
	}
}

// sameRules compares the rules of a rendered object with a rule file. It ignores white space in expressions.
func sameRules(t *testing.T, file string, spec any, text []byte) {
	t.Helper()
	var want any
	if err := yaml.Unmarshal(text, &want); err != nil {
		t.Fatal(err)
	}
	got, _ := spec.(map[string]any)
	ours, theirs := rulesOf(got), rulesOf(want.(map[string]any))
	if len(ours) == 0 || len(ours) != len(theirs) {
		t.Errorf("%s: Helm renders %d rules, want %d", file, len(ours), len(theirs))
		return
	}
	for i := range ours {
		if !reflect.DeepEqual(ours[i], theirs[i]) {
			t.Errorf("%s: Helm renders\n%v\nwant\n%v", file, ours[i], theirs[i])
		}
	}
}

// rulesOf returns the rules of a file. It adds the name and the interval of the group to each rule.
func rulesOf(file map[string]any) (all []map[string]any) {
	groups, _ := file["groups"].([]any)
	for _, g := range groups {
		group := g.(map[string]any)
		for _, r := range group["rules"].([]any) {
			rule := r.(map[string]any)
			rule["group"], rule["interval"] = group["name"], group["interval"]
			rule["expr"] = strings.Join(strings.Fields(strings.NewReplacer("(", " ( ", ")", " ) ").Replace(fmt.Sprint(rule["expr"]))), " ")
			all = append(all, rule)
		}
	}
	return all
}

func sameJSON(t *testing.T, file, got, want string) {
	t.Helper()
	var ours, theirs any
	if err := json.Unmarshal([]byte(got), &ours); err != nil {
		t.Errorf("%s: %v", file, err)
		return
	}
	if err := json.Unmarshal([]byte(want), &theirs); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(ours, theirs) {
		a, _ := json.MarshalIndent(ours, "", " ") // cannot fail: both were decoded from JSON
		b, _ := json.MarshalIndent(theirs, "", " ")
		t.Errorf("%s: %s", file, firstDifference(string(a), string(b)))
	}
}

func firstDifference(got, want string) string {
	ours, theirs := strings.Split(got, "\n"), strings.Split(want, "\n")
	for i := range min(len(ours), len(theirs)) {
		if ours[i] != theirs[i] {
			return fmt.Sprintf("line %d is %s, want %s", i+1, ours[i], theirs[i])
		}
	}
	return fmt.Sprintf("%d lines, want %d", len(ours), len(theirs))
}

// Helm's linter accepts the chart, with and without its parts.
func TestHelmAcceptsTheChart(t *testing.T) {
	for _, args := range [][]string{
		nil,
		{"--set", "scrape.enabled=true"},
		{"--set", "rules.enabled=false", "--set", "dashboards.enabled=false"},
		{"--set", "jobs.etcd=null", "--set", "commonLabels=null", "--set", "dashboards.labels=null"},
	} {
		if out, err := deploytest.Run(t, chartDir(t), deploytest.Tool(t, deploytest.Helm), append([]string{"lint", "--strict", "."}, args...)...); err != nil {
			t.Errorf("%v: %v\n%s", args, err, out)
		}
	}
}

// The chart's values set the objects' namespaces, names and labels.
func TestChartValues(t *testing.T) {
	got, err := installed(t, "--set", "scrape.enabled=true", "--set", "scrape.interval=30s", "--set", "dashboards.namespace=grafana", "--set", "rules.namespace=rules",
		"--set", "commonLabels.team=infra", "--set", "rules.labels.role=alerts", "--set", "dashboards.annotations.grafana_folder=Planes", "--set", "fullnameOverride=sg",
		"--set", "jobs.etcd=null", "--set", "jobs.kube-scheduler=my.scheduler")
	if err != nil {
		t.Fatal(err)
	}
	if o := got["PrometheusRule sg-scheduler"]; o.Metadata.Namespace != "rules" || o.Metadata.Labels["team"] != "infra" ||
		o.Metadata.Labels["role"] != "alerts" || o.Metadata.Labels["release"] != "kube-prometheus-stack" || !strings.Contains(fmt.Sprint(o.Spec), `job="my.scheduler"`) {
		t.Errorf("rules: %+v", o)
	}
	if spec := fmt.Sprint(got["PrometheusRule sg-targets"].Spec); !strings.Contains(spec, `job=~"apiserver|my[.]scheduler|kube-controller-manager"`) {
		t.Errorf("jobs in a regular expression: %s", spec)
	}
	if o := got["ConfigMap sg-scheduler-dashboard"]; o.Metadata.Namespace != "grafana" || o.Metadata.Annotations["grafana_folder"] != "Planes" ||
		o.Metadata.Labels["grafana_dashboard"] != "1" || o.Metadata.Labels["role"] != "" {
		t.Errorf("dashboard: %+v", o.Metadata)
	}
	monitor := got["ServiceMonitor stormglass-kube-scheduler"]
	if spec := fmt.Sprint(monitor.Spec); monitor.Metadata.Namespace != "observability" || !strings.Contains(spec, "replacement:my.scheduler") || !strings.Contains(spec, "interval:30s") {
		t.Errorf("monitor: %+v", monitor)
	}
	if o := got["Service stormglass-kube-scheduler"]; o.Metadata.Namespace != "kube-system" || o.Metadata.Labels["app.kubernetes.io/name"] != "stormglass-kube-scheduler" {
		t.Errorf("service: %+v", o)
	}
	for name := range got {
		if strings.Contains(name, "etcd") {
			t.Errorf("%s is rendered although etcd is left out", name)
		}
	}
}

// Values that are probably mistakes are refused with an error that names them.
func TestChartRefuses(t *testing.T) {
	for want, args := range map[string][]string{
		"every component is left out":                   {"--set", "jobs=null"},
		"kube-etcd is the job of both etcd and kube-sc": {"--set", "jobs.kube-scheduler=kube-etcd"},
		"/jobs":            {"--set", "jobs.apiserver=x"},
		"/jobs/etcd":       {"--set", `jobs.etcd=a"b`},
		"/clusterLabel":    {"--set", "clusterLabel=job"},
		"/runbookBase":     {"--set", "runbookBase=docs"},
		"/scrape/interval": {"--set", "scrape.interval=often"},
		"typo":             {"--set", "typo=1"},
	} {
		if _, err := installed(t, args...); err == nil || !strings.Contains(strings.ReplaceAll(err.Error(), ".", "/"), want) && !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v, want %s", args, err, want)
		}
	}
}
