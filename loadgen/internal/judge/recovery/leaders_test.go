package recovery

import (
	"testing"

	"github.com/stormglass/stormglass/loadgen/internal/rundir"
	"github.com/stormglass/stormglass/loadgen/internal/samples"
	"github.com/stormglass/stormglass/loadgen/result"
)

func TestLeaseFailsOverWhenHolderIsKilled(t *testing.T) {
	r := Analyse(&rundir.Recorded{
		Measurements: phase("kill", sec(5), sec(60)),
		Timeline: append(killedScheduler(), []result.Event{
			{Time: sec(30), Kind: "fault-end", Name: "kill", Fault: "1"},
			{Time: sec(31), Kind: "start", Name: "kube-scheduler-1"},
			{Time: sec(32), Kind: "ready", Name: "kube-scheduler-1"},
		}...),
	})
	if len(r.Handovers) != 1 {
		t.Fatalf("handovers = %+v", r.Handovers)
	}
	h := r.Handovers[0]
	if h.Of != "kube-scheduler" || h.From != "kube-scheduler-1" || h.To != "kube-scheduler-0" || h.Fault != "1" || h.Phase != "kill" {
		t.Errorf("handover = %+v", h)
	}
	isSeconds(t, "the failover", h.Failover, 15.98)
	isSeconds(t, "the fault's lease failover", r.Faults[0].LeaseFailover, 15.98)
	isSeconds(t, "the fault's leader failover", r.Faults[0].LeaderFailover, nil)
	if len(r.Restarts) != 1 || r.Restarts[0].Component != "kube-scheduler-1" || r.Restarts[0].Fault != "1" {
		t.Fatalf("restarts = %+v", r.Restarts)
	}
	isSeconds(t, "the time without the process", r.Restarts[0].Down, 21.98)
}

// Several faults in a row take etcd's leader. The last change happens by itself, long
// after.
func TestEtcdLeaderChangesAreAttributedToFaults(t *testing.T) {
	r := Analyse(&rundir.Recorded{Timeline: []result.Event{
		{Time: sec(0), Kind: "etcd-leader", Name: "etcd-0"},
		{Time: sec(10), Kind: "fault-begin", Name: "pause", Fault: "1", On: []string{"etcd-0"}},
		{Time: sec(11.5), Kind: "etcd-leader", Name: "etcd-2"},
		{Time: sec(11.6), Kind: "etcd-leader", Name: "etcd-2"}, // reported twice
		{Time: sec(20), Kind: "fault-end", Name: "pause", Fault: "1"},
		{Time: sec(30), Kind: "fault-begin", Name: "slowFsync", Fault: "2", On: []string{"etcd-0", "etcd-1", "etcd-2"}},
		{Time: sec(40), Kind: "fault-end", Name: "slowFsync", Fault: "2"},
		{Time: sec(41), Kind: "etcd-leader", Name: "etcd-1"},
		{Time: sec(200), Kind: "etcd-leader", Name: "etcd-0"},
	}})
	if len(r.Handovers) != 3 {
		t.Fatalf("handovers = %+v", r.Handovers)
	}
	for i, want := range []struct {
		fault    string
		failover any
	}{{"1", 1.5}, {"2", 11.0}, {"", nil}} {
		h := r.Handovers[i]
		if h.Of != "etcd" || h.Fault != want.fault {
			t.Errorf("handover %d is %+v, want it of fault %q", i, h, want.fault)
		}
		isSeconds(t, "its failover", h.Failover, want.failover)
	}
	isSeconds(t, "the pause's leader failover", r.Faults[0].LeaderFailover, 1.5)
}

// The only scheduler gets its own lease back.
func TestRestartedHolderRegainsLease(t *testing.T) {
	r := Analyse(&rundir.Recorded{
		Measurements: phase("storm", sec(0), sec(30)),
		Timeline: []result.Event{
			{Time: sec(0), Kind: "lease", Name: "kube-scheduler-0"},
			{Time: sec(10), Kind: "exit", Name: "kube-scheduler-0"}, // by itself: a crash
			{Time: sec(12), Kind: "ready", Name: "kube-scheduler-0"},
			{Time: sec(14), Kind: "lease", Name: "kube-scheduler-0"},
			{Time: sec(31), Kind: "exit", Name: "kube-scheduler-0"}, // the plane stops
		},
	})
	if len(r.Handovers) != 1 || r.Handovers[0].Fault != "" {
		t.Fatalf("handovers = %+v", r.Handovers)
	}
	isSeconds(t, "the failover", r.Handovers[0].Failover, 4.0)
	if len(r.Restarts) != 1 {
		t.Errorf("restarts = %+v", r.Restarts)
	}
}

func TestRelistStorm(t *testing.T) {
	slot := func(at float64, nodes, watches int64) samples.Slot {
		return samples.Slot{Begin: sec(at).UnixMilli(), Millis: 100, Streams: map[string]samples.StreamSlot{
			samples.Nodes: {Relists: nodes, Breaks: 1}, "flood": {Relists: watches, Delivered: 5},
		}}
	}
	r := Analyse(&rundir.Recorded{Timeline: faulty(1, 2), Slots: []samples.Slot{
		slot(0.5, 100, 100), // before
		slot(1.5, 3, 4), slot(2.4, 10, 0), slot(2.5, 1, 1), slot(20, 5, 0), slot(30, 0, 0),
		slot(33, 100, 100), // too late
	}})
	s := r.Faults[0].Relists
	if s.Relists != 24 || s.Breaks != 5 || s.ByLoad[samples.Nodes] != 19 || s.ByLoad["flood"] != 5 {
		t.Errorf("storm = %+v", s)
	}
	// 1.5 s and 2.5 s are a second apart, so they do not share a second.
	if s.PeakPerSecond != 17 {
		t.Errorf("the peak is %d a second, want 17", s.PeakPerSecond)
	}
	isSeconds(t, "the last relist", s.Last, 19.1)
}
