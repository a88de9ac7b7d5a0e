package realplane

import (
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/api"
	promv1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/model"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/stormglass/stormglass/alerts"
	"github.com/stormglass/stormglass/controlplane/control"
	"github.com/stormglass/stormglass/deploy/deploytest"
	"github.com/stormglass/stormglass/internal/scrapeconfig"
)

// The Prometheus server of the compose file runs with the arguments and files of its service. It scrapes each component
// of a plane with the plane's credentials and evaluates every rule. No rule about missing targets fires.
func TestPrometheusWatchesAPlane(t *testing.T) {
	cluster := plane.Cluster()
	var targets []control.ScrapeTarget
	want := map[string]string{} // job by instance
	for _, c := range cluster.Components {
		targets = append(targets, c.Scrape)
		want[c.Scrape.Instance] = c.Scrape.Job
	}
	_, err := scrapeconfig.Write(cluster.Dir, targets, scrapeconfig.Options{})
	must(t, err)
	project, err := deploytest.Compose(t, "STORMGLASS_USER=1000:1000", "STORMGLASS_PLANE="+cluster.Dir)
	must(t, err)
	ask := startPrometheus(t, project.Services["prometheus"])

	var missing string
	err = wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, 3*time.Minute, true, func(ctx context.Context) (bool, error) {
		for _, check := range []func(context.Context, promv1.API) (string, error){
			func(ctx context.Context, ask promv1.API) (string, error) { return scraped(ctx, ask, want) },
			evaluated,
			quiet,
		} {
			var err error
			if missing, err = check(ctx, ask); missing != "" || err != nil {
				return false, err
			}
		}
		return true, nil
	})
	if err != nil {
		t.Fatalf("%v; still missing: %s", err, missing)
	}
}

// scraped describes a target that Prometheus has not scraped yet, or returns "".
func scraped(ctx context.Context, ask promv1.API, want map[string]string) (string, error) {
	found, err := ask.Targets(ctx)
	if err != nil {
		return "", err
	}
	up := map[string]string{}
	for _, target := range found.Active {
		if target.Health != promv1.HealthGood {
			return fmt.Sprintf("%s: %s %s", target.ScrapeURL, target.Health, target.LastError), nil
		}
		up[string(target.Labels["instance"])] = string(target.Labels["job"])
	}
	if !maps.Equal(up, want) {
		return fmt.Sprintf("targets %v, not %v", up, want), nil
	}
	return "", nil
}

// evaluated describes a rule that was not evaluated yet, or returns "". It fails if a rule cannot be evaluated, or if
// the server has not loaded all rules.
func evaluated(ctx context.Context, ask promv1.API) (string, error) {
	loaded, err := alerts.Load()
	if err != nil {
		return "", err
	}
	want := map[string]int{} // rules by group
	for _, g := range loaded {
		want[g.Name] = len(g.Rules)
	}
	got, idle, err := allEvaluated(ctx, ask)
	if err == nil && idle == "" && !maps.Equal(got, want) {
		err = fmt.Errorf("groups of rules: %v, want %v", got, want)
	}
	return idle, err
}

// unevaluated describes the rule if it was not evaluated yet, or returns "". It fails if the rule cannot be evaluated.
func unevaluated(rule any) (string, error) {
	name, health, why := "", promv1.RuleHealth(""), ""
	switch r := rule.(type) {
	case promv1.AlertingRule:
		name, health, why = r.Name, r.Health, r.LastError
	case promv1.RecordingRule:
		name, health, why = r.Name, r.Health, r.LastError
	}
	switch health {
	case promv1.RuleHealthGood:
		return "", nil
	case promv1.RuleHealthUnknown:
		return name + " was not evaluated", nil
	}
	return "", fmt.Errorf("%s: %s %s", name, health, why)
}

// quiet returns the active alerts about missing targets or metrics, or "". At first, all targets are missing.
func quiet(ctx context.Context, ask promv1.API) (string, error) {
	now, _, err := ask.Query(ctx, `ALERTS{alertname=~"TargetDown|TargetAbsent|MetricsMissing"}`, time.Time{})
	if err != nil {
		return "", err
	}
	if v := now.(model.Vector); len(v) > 0 {
		return v.String(), nil
	}
	return "", nil
}

// startPrometheus starts the service as its container would, except for the port and the paths
// of the container's files, and returns a client for it.
func startPrometheus(t *testing.T, service deploytest.Service) promv1.API {
	t.Helper()
	container := service.Container(t)
	var config, data string
	var args []string
	for _, arg := range service.Command {
		switch name, value, _ := strings.Cut(arg, "="); name {
		case "--config.file":
			config = filepath.Join(container, filepath.FromSlash(value))
		case "--storage.tsdb.path":
			data = filepath.Join(container, filepath.FromSlash(value))
		case "--web.listen-address":
		default:
			args = append(args, arg)
		}
	}
	client, err := api.NewClient(api.Config{Address: deploytest.StartPrometheus(t, config, data, args...)})
	must(t, err)
	return promv1.NewAPI(client)
}
