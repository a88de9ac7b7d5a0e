package observe_test

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stormglass/stormglass/alerts"
	"github.com/stormglass/stormglass/controlplane/control"
	"github.com/stormglass/stormglass/deploy/deploytest"
	"github.com/stormglass/stormglass/internal/scrapeconfig"
	"github.com/stormglass/stormglass/loadgen/internal/observe"
)

// TestPromtool: Prometheus' own tool works with the server.
func TestPromtool(t *testing.T) {
	lab, end := storm(t)
	url, at := start(t, observe.Config{Recorder: lab.Recorder()}).URL(), end.Format(time.RFC3339Nano)
	from := end.Add(-time.Minute).Format(time.RFC3339Nano)
	promtool := deploytest.Tool(t, deploytest.Promtool)
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"check", "healthy", "--url", url}, "Prometheus Server is Healthy"},
		{[]string{"check", "ready", "--url", url}, "Prometheus Server is Ready"},
		{[]string{"query", "instant", "--time", at, url, "sum(etcd_server_leader_changes_seen_total)"}, "{} => 31 @[1800000060]"},
		{[]string{"query", "range", "--start", from, "--end", at, "--step", "30s", url, `up{job="kube-apiserver"}`}, "1 @[1800000000]\n1 @[1800000030]\n0 @[1800000060]"},
		{[]string{"query", "series", "--match", "up", "--start", from, "--end", at, url}, `{__name__="up", instance="etcd-0", job="etcd"}`},
		{[]string{"query", "labels", "--start", from, "--end", at, url, "job"}, "etcd\nkube-apiserver"},
	} {
		out, err := deploytest.Run(t, ".", promtool, c.args...)
		if err != nil || !strings.Contains(out, c.want) {
			t.Errorf("promtool %s: %v\n%s\nwant %s", strings.Join(c.args, " "), err, out, c.want)
		}
	}
	if out, err := deploytest.Run(t, ".", promtool, "query", "instant", url, "up("); err == nil || !strings.Contains(out, "bad_data") {
		t.Errorf("a query that does not parse: %v\n%s", err, out)
	}
}

// TestPromtoolChecksConfig: the configuration for the user's Prometheus is valid, with
// the shipped rules.
func TestPromtoolChecksConfig(t *testing.T) {
	dir, err := scrapeconfig.Write(t.TempDir(), []control.ScrapeTarget{
		{Job: "etcd", Instance: "etcd-0", URL: "https://127.0.0.1:2379/metrics", ServerName: "etcd-0"},
		{Job: "loadgen", Instance: "loadgen", URL: "http://127.0.0.1:1234/metrics"},
	}, scrapeconfig.Options{Rules: alerts.Files()})
	if err != nil {
		t.Fatal(err)
	}
	out, err := deploytest.Run(t, dir, deploytest.Tool(t, deploytest.Promtool), "check", "config", filepath.Join(dir, scrapeconfig.ServerFile))
	if err != nil || !strings.Contains(out, "SUCCESS") || strings.Contains(out, "FAILED") {
		t.Errorf("%v\n%s", err, out)
	}
}
