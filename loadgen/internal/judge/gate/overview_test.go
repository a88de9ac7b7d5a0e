package gate

import (
	"context"
	"testing"

	"github.com/stormglass/stormglass/loadgen/internal/rundir"
	"github.com/stormglass/stormglass/loadgen/internal/scrape"
	"github.com/stormglass/stormglass/loadgen/result"
)

// A result has all four key metrics, from the first scrape to the last, and the resources that each process used.
func TestKeyMetricsAndCosts(t *testing.T) {
	l := newLab(t, scrape.Options{})
	api := l.Parts["kube-apiserver-0"]
	l.Parts["etcd-1"].Add("etcd_server_leader_changes_seen_total", 3) // its series begins after the first scrape
	l.Parts["etcd-0"].Observe("etcd_disk_wal_fsync_duration_seconds", "", fsyncEdges, 0.003, 100)
	p := l.Phase("calm", func() {
		api.Observe("apiserver_request_duration_seconds", `verb="LIST",resource="pods"`, apiEdges, 0.15, 50)
		api.Observe("apiserver_request_duration_seconds", `verb="LIST",resource="nodes"`, apiEdges, 0.15, 50)
		api.Observe("apiserver_request_duration_seconds", `verb="WATCH",resource="pods"`, apiEdges, 59, 1000)
		api.Observe("apiserver_request_duration_seconds", `verb="GET",resource="pods"`, apiEdges, 0.01, 0)
		l.Parts["loadgen"].Add("process_cpu_seconds_total", 1)
		api.Add("process_cpu_seconds_total", 3)
	})
	res, err := Judge(context.Background(), nil, &rundir.Recorded{Archive: l.Archive(), Measurements: result.Measurements{Phases: []result.Phase{p}}})
	if err != nil {
		t.Fatal(err)
	}
	fsync, request, attempt, leader := res.Key[0], res.Key[1], res.Key[2], res.Key[3]
	if len(fsync.Rows) != 1 || fsync.Rows[0].Label != "etcd-0" || fsync.Rows[0].Count != 100 || !near(*fsync.Rows[0].P50, 0.003) || !near(*fsync.Rows[0].P99, 0.00398) {
		t.Errorf("%+v", fsync)
	}
	if len(request.Rows) != 1 || request.Rows[0].Label != "LIST" || request.Rows[0].Count != 100 || !near(*request.Rows[0].P99, 0.199) {
		t.Errorf("%+v: want LIST alone: GET had no observation, WATCH is no latency", request)
	}
	if attempt.Name != "scheduler_scheduling_attempt_duration_seconds" || len(attempt.Rows) != 0 || attempt.Missing == "" {
		t.Errorf("%+v: want it named as missing", attempt)
	}
	if leader.Name != "etcd_server_leader_changes_seen_total" || len(leader.Rows) != 1 || leader.Rows[0].Label != "etcd-1" || *leader.Rows[0].Value != 3 {
		t.Errorf("%+v", leader)
	}
	if len(res.Components) != 6 {
		t.Fatalf("%d components, want 6", len(res.Components))
	}
	for _, c := range res.Components {
		want := map[string]float64{"loadgen": 1, "kube-apiserver-0": 3}[c.Name]
		if !near(c.CPUSeconds, want) || !near(c.CPUShare, want/4) || c.MaxRSSBytes != 3e8 || c.MaxDescriptors != 42 {
			t.Errorf("%+v", c)
		}
	}
}
