package remotewrite_test

import (
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stormglass/stormglass/controlplane/control"
	"github.com/stormglass/stormglass/deploy/deploytest"
	"github.com/stormglass/stormglass/loadgen/internal/archivetest"
	"github.com/stormglass/stormglass/loadgen/internal/remotewrite"
	"github.com/stormglass/stormglass/loadgen/internal/scrape"
)

// A real Prometheus server with its receiver enabled has the recorded samples, and answers queries about them.
func TestPrometheusReceives(t *testing.T) {
	config := filepath.Join(t.TempDir(), "prometheus.yml")
	if err := os.WriteFile(config, []byte("global: {scrape_interval: 1h}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	url := deploytest.StartPrometheus(t, config, t.TempDir(), "--web.enable-remote-write-receiver")
	etcd := archivetest.NewComponent()
	server := httptest.NewServer(etcd)
	t.Cleanup(server.Close)
	recorder, err := scrape.Open(t.TempDir(), []control.ScrapeTarget{{Job: "etcd", Instance: "etcd-0", URL: server.URL}}, scrape.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := recorder.Close(); err != nil {
			t.Error(err)
		}
	})
	client, err := remotewrite.New(remotewrite.Config{URL: url + "/api/v1/write"})
	if err != nil {
		t.Fatal(err)
	}
	begin := time.Now()
	var at time.Time
	for i := range 3 {
		if i == 2 {
			etcd.Add("etcd_server_leader_changes_seen_total", 7)
		}
		if at, err = recorder.ScrapeNow(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	sent, err := remotewrite.Send(t.Context(), client, remotewrite.Options{
		Samples: recorder.Live(), From: begin, Labels: map[string]string{"run": "mine", "cluster": "lab"},
	}, at)
	if err != nil || sent.Sent == 0 || sent.Refused > 0 {
		t.Fatalf("%+v, %v", sent, err)
	}
	promtool := deploytest.Tool(t, deploytest.Promtool)
	for expr, want := range map[string]string{
		`count_over_time(up{run="mine"}[5m])`: `{cluster="lab", instance="etcd-0", job="etcd", run="mine"} => 3 @`,
		`max_over_time(etcd_server_leader_changes_seen_total[5m]) - min_over_time(etcd_server_leader_changes_seen_total[5m])`: `=> 7 @`,
	} {
		out, err := deploytest.Run(t, ".", promtool, "query", "instant", "--time", at.Format(time.RFC3339Nano), url, expr)
		if err != nil || !strings.Contains(out, want) {
			t.Errorf("%s: %v\n%s\nwant %s", expr, err, out, want)
		}
	}
}
