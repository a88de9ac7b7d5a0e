package realplane

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/prometheus/client_golang/api"
	promv1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/promql/parser"
	"go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/stormglass/stormglass/alerts/render"
	"github.com/stormglass/stormglass/controlplane/control"
	"github.com/stormglass/stormglass/dashboards"
	"github.com/stormglass/stormglass/deploy/deploytest"
	"github.com/stormglass/stormglass/internal/scrapeconfig"
)

// theirCluster is the label that distinguishes the clusters of the other Prometheus server.
const theirCluster = "k8s_cluster"

// withoutSeries lists metrics that have no series on a healthy plane, each with the reason.
// docs/how-to/grafana-prometheus.md lists them too.
func withoutSeries() map[string]string {
	const (
		webhook  = "no admission webhook is registered"
		rejected = "priority and fairness has rejected nothing"
		one      = "one etcd member has no peers"
		cloud    = "there is no cloud-controller-manager"
	)
	return map[string]string{
		"apiserver_admission_webhook_admission_duration_seconds_bucket":      webhook,
		"apiserver_admission_webhook_admission_duration_seconds_count":       webhook,
		"apiserver_admission_webhook_fail_open_count":                        webhook,
		"apiserver_admission_webhook_rejection_count":                        webhook,
		"cluster_name:apiserver_admission_webhook_over_500ms:ratio_rate2m":   webhook,
		"apiserver_audit_error_total":                                        "no audit event was lost",
		"apiserver_authorization_webhook_evaluations_total":                  "no authorization webhook is configured",
		"apiserver_crd_conversion_webhook_duration_seconds_count":            "no webhook converts custom resources",
		"apiserver_envelope_encryption_kms_operations_latency_seconds_count": "no KMS plugin encrypts",
		"apiserver_flowcontrol_rejected_requests_total":                      rejected,
		"cluster_level:apiserver_flowcontrol_rejected_requests:rate2m":       rejected,
		`apiserver_request_total{code=~"5.."}`:                               "no request failed",
		"apiserver_terminated_watchers_total":                                "no watch was too slow",
		`authentication_attempts{result="error"}`:                            "no authentication failed",
		"etcd_debugging_server_alarms":                                       "etcd has raised no alarm",
		"etcd_network_peer_round_trip_time_seconds_count":                    one,
		"etcd_network_peer_round_trip_time_seconds_sum":                      one,
		"instance_to:etcd_network_peer_round_trip_time_seconds:mean_rate2m":  one,
		`workqueue_adds_total{job="cloud-controller-manager"}`:               cloud,
		`workqueue_retries_total{job="cloud-controller-manager"}`:            cloud,
	}
}

// A Prometheus server scrapes a plane with the job names of kube-prometheus-stack and another cluster label. Each
// selector of the rules rendered for this chart matches series, except those in withoutSeries. So does each selector of
// a panel that must have data.
func TestRenderedRulesMatchTheStack(t *testing.T) {
	jobs, err := render.Preset("kube-prometheus-stack")
	must(t, err)
	jobs[render.Generator] = ""
	bundle, err := render.Render(render.Options{Jobs: jobs, ClusterLabel: theirCluster})
	must(t, err)
	scheduleAPod(t)
	ask := startTheirs(t, jobs, bundle)

	wanted := ruleSelectors(t, bundle)
	panels := panelSelectors(t, bundle)
	var missing []string
	idle := ""
	err = wait.PollUntilContextTimeout(t.Context(), time.Second, 3*time.Minute, true, func(ctx context.Context) (bool, error) {
		var err error
		if missing, err = unmatched(ctx, ask, slices.Concat(wanted, panels)); err != nil {
			return false, err
		}
		if _, idle, err = allEvaluated(ctx, ask); idle != "" || err != nil {
			return false, err
		}
		return !slices.ContainsFunc(missing, func(s string) bool { return excuse(s) == "" }), nil
	})
	excused := 0
	for _, s := range missing {
		why := excuse(s)
		if why == "" {
			t.Errorf("no series matches %s", s)
			continue
		}
		if slices.Contains(wanted, s) {
			excused++
		}
		t.Logf("no series matches %s: %s", s, why)
	}
	if err != nil {
		t.Fatal(err, idle)
	}
	t.Logf("%d of %d selectors of rules, and %d of panels, match series", len(wanted)-excused, len(wanted), len(panels))

	// Recording rules keep the cluster label.
	lost, _, err := ask.Query(t.Context(), `count by (__name__) ({__name__=~".+:.+", `+theirCluster+`!="shop"})`, time.Time{})
	must(t, err)
	if v := lost.(model.Vector); len(v) > 0 {
		t.Errorf("records without the cluster: %v", v)
	}
}

// excuse returns the reason why a selector has no series, or "" if it should have some.
func excuse(selector string) string {
	for what, why := range withoutSeries() {
		name, matcher, _ := strings.Cut(strings.TrimSuffix(what, "}"), "{")
		if of, _, _ := strings.Cut(selector, "{"); of == name && strings.Contains(selector, matcher) {
			return why
		}
	}
	return ""
}

// startTheirs starts a Prometheus server that scrapes the plane under the job names in jobs and evaluates the bundle's
// rules.
func startTheirs(t *testing.T, jobs map[string]string, bundle render.Bundle) promv1.API {
	t.Helper()
	var targets []control.ScrapeTarget
	for _, c := range plane.Cluster().Components {
		target := c.Scrape
		if theirs, named := jobs[target.Job]; named {
			target.Job = theirs
		}
		targets = append(targets, target)
	}
	rules := fstest.MapFS{}
	for name, text := range bundle.Files {
		if file, ok := strings.CutPrefix(name, "rules/"); ok {
			rules[file] = &fstest.MapFile{Data: text}
		}
	}
	dir, err := scrapeconfig.Write(t.TempDir(), targets, scrapeconfig.Options{Rules: rules})
	must(t, err)
	files, err := filepath.Glob(filepath.Join(dir, "targets", "*.json"))
	must(t, err)
	for _, file := range files {
		text, err := os.ReadFile(file)
		must(t, err)
		var groups []struct {
			Targets []string          `json:"targets"`
			Labels  map[string]string `json:"labels"`
		}
		must(t, json.Unmarshal(text, &groups))
		for _, g := range groups {
			g.Labels[theirCluster] = "shop"
		}
		text, err = json.Marshal(groups)
		must(t, err)
		must(t, os.WriteFile(file, text, 0o600))
	}
	if len(files) == 0 {
		t.Fatalf("%s has no targets", dir)
	}
	client, err := api.NewClient(api.Config{Address: deploytest.StartPrometheus(t, filepath.Join(dir, scrapeconfig.ServerFile), t.TempDir())})
	must(t, err)
	return promv1.NewAPI(client)
}

// scheduleAPod creates a node without a kubelet, and waits until the scheduler has bound a pod to it.
func scheduleAPod(t *testing.T) {
	t.Helper()
	for _, args := range [][]string{
		{"wait", "serviceaccount/default", "--for=create", "--timeout=60s"},
		{"create", "-f", "-"},
		{"patch", "node", "stack", "--subresource=status", "--type=merge", "--patch",
			`{"status": {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "10"}, "capacity": {"cpu": "4", "memory": "8Gi", "pods": "10"}}}`},
	} {
		_, err := kubectl(t, `{"apiVersion": "v1", "kind": "List", "items": [
			{"apiVersion": "v1", "kind": "Node", "metadata": {"name": "stack"}},
			{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "stack", "namespace": "default"}, "spec": {
				"tolerations": [{"operator": "Exists"}], "automountServiceAccountToken": false, "containers": [{"name": "c", "image": "none"}]}}]}`, args...)
		must(t, err)
	}
	_, err := kubectl(t, "", "wait", "pod/stack", "--for=condition=PodScheduled", "--timeout=60s")
	must(t, err)
	t.Cleanup(func() {
		if _, err := kubectl(t, "", "delete", "node/stack", "pod/stack", "--grace-period=0", "--force", "--wait=false"); err != nil {
			t.Error(err)
		}
	})
}

// ruleSelectors returns the selectors of all rules without duplicates.
func ruleSelectors(t *testing.T, b render.Bundle) []string {
	t.Helper()
	all := map[string]bool{}
	for name, text := range b.Files {
		if !strings.HasPrefix(name, "rules/") {
			continue
		}
		var file struct {
			Groups []struct {
				Rules []struct{ Expr string }
			}
		}
		must(t, yaml.Unmarshal(text, &file))
		for _, g := range file.Groups {
			for _, r := range g.Rules {
				selectors(t, r.Expr, all)
			}
		}
	}
	if len(all) < 50 {
		t.Fatalf("the rules have only %d selectors", len(all))
	}
	return slices.Sorted(maps.Keys(all))
}

// panelSelectors returns the selectors of the panel queries that must have a result in every run.
func panelSelectors(t *testing.T, b render.Bundle) []string {
	t.Helper()
	shipped, err := dashboards.Load()
	must(t, err)
	mayBeEmpty := map[[3]string]bool{}
	for _, d := range shipped {
		for _, row := range d.Rows {
			for _, p := range row.Panels {
				for _, q := range p.Queries {
					mayBeEmpty[[3]string{d.UID, p.Title, q.RefID}] = q.Reason != nil
				}
			}
		}
	}
	all := map[string]bool{}
	for name, text := range b.Files {
		if !strings.HasPrefix(name, "dashboards/") {
			continue
		}
		var d struct {
			UID    string
			Panels []struct {
				Title   string
				Targets []struct{ RefID, Expr string }
			}
		}
		must(t, json.Unmarshal(text, &d))
		for _, p := range d.Panels {
			for _, q := range p.Targets {
				if !mayBeEmpty[[3]string{d.UID, p.Title, q.RefID}] {
					selectors(t, dashboards.Expand(q.Expr, dashboards.Window{Rate: time.Minute, Interval: 15 * time.Second, Range: time.Hour}), all)
				}
			}
		}
	}
	if len(all) < 50 {
		t.Fatalf("the dashboards have only %d selectors", len(all))
	}
	return slices.Sorted(maps.Keys(all))
}

// selectors adds the selectors of an expression to all.
func selectors(t *testing.T, expr string, all map[string]bool) {
	t.Helper()
	parsed, err := parser.NewParser(parser.Options{}).ParseExpr(expr)
	must(t, err)
	parser.Inspect(parsed, func(n parser.Node, _ []parser.Node) error {
		if s, ok := n.(*parser.VectorSelector); ok && !strings.HasPrefix(s.Name, "ALERTS") {
			all[(&parser.VectorSelector{Name: s.Name, LabelMatchers: s.LabelMatchers}).String()] = true
		}
		return nil
	})
}

// unmatched returns the selectors that matched no series in the last 5 minutes.
func unmatched(ctx context.Context, ask promv1.API, all []string) (missing []string, err error) {
	for _, s := range all {
		found, _, err := ask.Query(ctx, "count(last_over_time("+s+"[5m]))", time.Time{})
		if err != nil {
			return nil, fmt.Errorf("%s: %w", s, err)
		}
		if len(found.(model.Vector)) == 0 {
			missing = append(missing, s)
		}
	}
	return missing, nil
}

// allEvaluated returns the number of rules of each group. idle describes a rule that was not evaluated yet, or is "".
// allEvaluated fails if a rule cannot be evaluated.
func allEvaluated(ctx context.Context, ask promv1.API) (rules map[string]int, idle string, err error) {
	found, err := ask.Rules(ctx, nil)
	if err == nil && len(found.Groups) == 0 {
		idle = "no rules are loaded"
	}
	rules = map[string]int{}
	for _, g := range found.Groups {
		rules[g.Name] = len(g.Rules)
		for _, r := range g.Rules {
			if idle, err := unevaluated(r); idle != "" || err != nil {
				return nil, idle, err
			}
		}
	}
	return rules, idle, err
}
