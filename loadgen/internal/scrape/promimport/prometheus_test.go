package promimport

import (
	"context"
	"fmt"
	"net/http/httptest"
	"path/filepath"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/stormglass/stormglass/controlplane/control"
	"github.com/stormglass/stormglass/deploy/deploytest"
	"github.com/stormglass/stormglass/internal/scrapeconfig"
	"github.com/stormglass/stormglass/loadgen/internal/archive"
	"github.com/stormglass/stormglass/loadgen/internal/archivetest"
	"github.com/stormglass/stormglass/loadgen/internal/scrape"
)

// TestRealPrometheus: a real Prometheus server scrapes with a configuration written
// for it, and the copy contains every sample that it scraped.
func TestRealPrometheus(t *testing.T) {
	etcd := archivetest.NewComponent()
	etcd.Add("etcd_server_leader_changes_seen_total", 4)
	server := httptest.NewServer(etcd)
	defer server.Close()
	dir, err := scrapeconfig.Write(t.TempDir(), []control.ScrapeTarget{{Job: "kube-etcd", Instance: "cp-1", URL: server.URL + "/metrics"}},
		scrapeconfig.Options{Interval: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	url := deploytest.StartPrometheus(t, filepath.Join(dir, scrapeconfig.ServerFile), t.TempDir())

	s, err := New(Config{URL: url})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for err = s.Find(ctx); err != nil || s.Interval() > 2*time.Second; err = s.Find(ctx) { // until it was scraped twice
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatal(err)
		}
	}
	r := &recording{t: t, dir: t.TempDir(), done: make(chan error, 1)}
	if r.Recorder, err = s.Record(r.dir, scrape.Options{Registry: prometheus.NewRegistry(), Log: t.Logf}); err != nil {
		t.Fatal(err)
	}
	ctx, r.end = context.WithCancel(context.Background())
	go func() { r.done <- r.Run(ctx) }()
	r.boundary()
	etcd.Add("etcd_server_leader_changes_seen_total", 1000)
	begin := r.boundary()
	etcd.Add("etcd_server_leader_changes_seen_total", 30)
	etcd.Add(`etcd_server_proposals_failed_total`, 7) // its first
	end := r.boundary()
	etcd.Add("etcd_server_leader_changes_seen_total", 1000)
	r.boundary()
	a, scrapes := r.archive()
	for series, want := range map[string]float64{"etcd_server_leader_changes_seen_total": 30, "etcd_server_proposals_failed_total": 7} {
		got, err := a.Instant(t.Context(), fmt.Sprintf(`round(increase(%s{job="etcd",instance="cp-1"}[%s]))`, series, archive.Window(begin, end)), end)
		if err != nil || len(got) != 1 || got[0].V != want {
			t.Errorf("%s grew by %v (%v), want %v", series, got, err, want)
		}
	}
	if scrapes.Done < 4 {
		t.Errorf("scrapes: %+v", scrapes)
	}
}
