package cli

import (
	"encoding/json"
	"net/http"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stormglass/stormglass/alerts"
	"github.com/stormglass/stormglass/controlplane/control"
	"github.com/stormglass/stormglass/deploy/deploytest"
	"github.com/stormglass/stormglass/internal/planetest"
	"github.com/stormglass/stormglass/internal/scrapeconfig"
	"github.com/stormglass/stormglass/loadgen/internal/scrape/promimport"
)

// series returns the number of series that a Prometheus server returns for an expression.
func series(t *testing.T, at, expr string) int {
	t.Helper()
	resp, err := http.Get(at + "/api/v1/query?query=" + url.QueryEscape(expr))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var body struct {
		Data struct{ Result []any }
	}
	if err := json.NewDecoder(resp.Body).Decode(&body); err != nil {
		t.Fatal(err)
	}
	return len(body.Data.Result)
}

// queryWhileUnderWay reads the address of the query API from the output of an active run, and queries the series of five
// targets and of the generator.
func queryWhileUnderWay(t *testing.T, p *loadgenProcess) {
	t.Helper()
	p.awaitLine("Prometheus' query API is at http://")
	_, at, _ := strings.Cut(p.said[len(p.said)-1], "query API is at ")
	at, _, _ = strings.Cut(at, " ")
	p.awaitLine("phase rollout")
	deadline := time.After(time.Minute) // a scrape may take 10 s on a busy machine
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for series(t, at, "up == 1") < 5 {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("only %d of five targets are up", series(t, at, "up == 1"))
		}
	}
	if n := series(t, at, `count by (job) (process_cpu_seconds_total{job="loadgen"})`); n != 1 {
		t.Errorf("the archive has %d series of the generator's CPU time", n)
	}
}

// TestRunReadsPrometheus: with a Prometheus server that scrapes the user's cluster, set up as kube-prometheus-stack
// does it, the gates have data of components that the run could not have scraped.
func TestRunReadsPrometheus(t *testing.T) {
	useSharedPlane(t)
	var targets []control.ScrapeTarget
	for _, c := range plane.Cluster().Components {
		theirs := c.Scrape
		theirs.Job = promimport.KubePrometheusStack()[c.Kind]
		targets = append(targets, theirs)
	}
	const interval = 10 * time.Second // also the timeout of a scrape, which a busy machine may need
	config, err := scrapeconfig.Write(t.TempDir(), targets, scrapeconfig.Options{Interval: interval, Rules: alerts.Files()})
	if err != nil {
		t.Fatal(err)
	}
	at := deploytest.StartPrometheus(t, filepath.Join(config, scrapeconfig.ServerFile), t.TempDir())
	deadline := time.After(2 * time.Minute)
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for series(t, at, "count_over_time(up[2m]) >= 2") < len(targets) {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatal("the Prometheus server does not scrape all components")
		}
	}

	kubeconfig := plane.Cluster().Kubeconfigs["admin"]
	dir := filepath.Join(planetest.Dir(t), "run")
	p := startLoadgen(t, "run", "testdata/mini.yaml", "--out", dir, "--kubeconfig", kubeconfig, "--yes", "--prometheus", at)
	p.awaitLine("this run reads the metrics of etcd, kube-apiserver, kube-controller-manager, kube-scheduler from " + at)
	r := wantPass(t, p, dir)
	if c := r.Run.Cluster; c.Prometheus != at || !slices.Contains(c.Targets, "etcd-0") {
		t.Errorf("recorded of the cluster: %+v", c)
	}
	for _, k := range r.Key {
		if len(k.Rows) == 0 {
			t.Errorf("key metric %s has no value: %s", k.Name, k.Missing)
		}
	}
	wantNothingLeft(t, kubeconfig)
}
