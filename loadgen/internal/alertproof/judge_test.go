package alertproof

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stormglass/stormglass/loadgen/internal/archivetest"
	"github.com/stormglass/stormglass/loadgen/internal/rundir"
	"github.com/stormglass/stormglass/loadgen/internal/scrape"
	"github.com/stormglass/stormglass/loadgen/result"
)

func byName(t *testing.T, name string) Proof {
	t.Helper()
	all, err := Select([]string{name}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return all[0]
}

func judged(t *testing.T, p Proof, in *rundir.Recorded) Judged {
	t.Helper()
	j, err := Judge(t.Context(), p, in)
	if err != nil {
		t.Fatal(err)
	}
	return j
}

// slowPath is a run in which the disk is slow from `after` on in its phase, and the link
// is slow in all of its phase.
func slowPath(t *testing.T, after time.Duration, o scrape.Options, more func(l *archivetest.Lab, phase string, at time.Duration)) *rundir.Recorded {
	t.Helper()
	return recordRun(t, byName(t, "slow-path"), o, func(l *archivetest.Lab, phase string, at time.Duration) {
		disk, link := 0.002, 0.01
		if phase == "disk" && at > after {
			disk = 0.012
		}
		if phase == "link" {
			link = 0.13
		}
		fsync(l, disk)
		l.Parts["kube-apiserver-0"].Observe("etcd_request_duration_seconds", `operation="update"`, requestEdges, link, 50)
		if more != nil {
			more(l, phase, at)
		}
	})
}

// A rule that fires in time and resolves is proven; all others were silent.
func TestProven(t *testing.T) {
	in := slowPath(t, 0, scrape.Options{}, nil)
	j := judged(t, byName(t, "slow-path"), in)
	if j.Verdict != result.Pass || len(j.Reasons) > 0 {
		t.Fatalf("%s: %q", j.Verdict, j.Reasons)
	}
	// Scrapes are at 0 s, 1 s, then every 5 s up to 46 s. The phase with the slow disk begins at 47 s, its fault a
	// second later. At 60 s, two of the last twelve scrapes had slow fsyncs, which is more than a tenth. The alert is
	// then pending for 60 s and fires at 120 s.
	o := j.Outcome("EtcdWALFsyncSlow")
	if o.Part != MustFire || *o.CauseAt != 48 || *o.FiredAt != 120 || *o.Latency != 72 || *o.Floor != 92 || o.InCalm {
		t.Errorf("%+v: cause %v, fired %v, latency %v of %v", o, *o.CauseAt, *o.FiredAt, *o.Latency, *o.Floor)
	}
	// The last slow fsync is scraped at 187 s. Two minutes later, at most a tenth of the fsyncs in the range are slow.
	if *o.ResolvedAt < 187+90 || *o.ResolvedAt > 187+120 {
		t.Errorf("the alert resolved at %v s, want 277 s to 307 s", *o.ResolvedAt)
	}
	for _, other := range j.Outcomes {
		if other.Part == Silent && (other.Fired || other.Verdict == result.Fail) {
			t.Errorf("%+v", other)
		}
	}
	if link := j.Outcome("APIServerEtcdSlow"); *link.Latency <= 0 || *link.Latency > *link.Floor {
		t.Errorf("the link: %v of %v", *link.Latency, *link.Floor)
	}
}

// Every violation of the proof fails, with the reason.
func TestFails(t *testing.T) {
	p := byName(t, "slow-path")
	fails := func(t *testing.T, j Judged, rule, why string) {
		t.Helper()
		o := j.Outcome(rule)
		if j.Verdict != result.Fail || o.Verdict != result.Fail || !strings.Contains(o.Why, why) {
			t.Errorf("proof %s, %s %s: %q; want %q", j.Verdict, rule, o.Verdict, o.Why, why)
		}
	}
	t.Run("late", func(t *testing.T) {
		t.Parallel()
		j := judged(t, p, slowPath(t, 85*time.Second, scrape.Options{}, nil))
		fails(t, j, "EtcdWALFsyncSlow", "fired 2m42s after its cause, which is more than 1.5 times its shortest possible latency of 1m32s")
	})
	t.Run("never", func(t *testing.T) {
		t.Parallel()
		j := judged(t, p, slowPath(t, time.Hour, scrape.Options{}, nil))
		fails(t, j, "EtcdWALFsyncSlow", "did not fire, and was never over its threshold")
	})
	t.Run("before its cause", func(t *testing.T) {
		t.Parallel()
		in := slowPath(t, 0, scrape.Options{}, nil)
		for i := range in.Timeline {
			if in.Timeline[i].Name == "slowFsync" {
				in.Timeline[i].Time = in.Timeline[i].Time.Add(100 * time.Second)
			}
		}
		fails(t, judged(t, p, in), "EtcdWALFsyncSlow", "fired 28s before the fault that should cause it")
	})
	t.Run("pending before its cause", func(t *testing.T) {
		t.Parallel()
		in := slowPath(t, 0, scrape.Options{}, nil)
		for i := range in.Timeline {
			if in.Timeline[i].Name == "slowFsync" {
				in.Timeline[i].Time = in.Timeline[i].Time.Add(50 * time.Second)
			}
		}
		fails(t, judged(t, p, in), "EtcdWALFsyncSlow", "fired, but was over its threshold already 38s before the fault that should cause it")
	})
	t.Run("unrelated", func(t *testing.T) {
		t.Parallel()
		j := judged(t, p, slowPath(t, 0, scrape.Options{}, func(l *archivetest.Lab, phase string, at time.Duration) {
			if phase == "after" && at == scraped {
				l.Parts["etcd-0"].Add("process_max_fds", -955) // of 1,000; 42 are open
			}
		}))
		fails(t, j, "DescriptorsRunningOut", "although nothing in this proof should make it fire: etcd at etcd-0 runs out of file descriptors")
		if o := j.Outcome("EtcdWALFsyncSlow"); o.Verdict != result.Pass {
			t.Errorf("what did fire: %+v", o)
		}
		r := NewReport([]Judged{j}, []string{"EtcdWALFsyncSlow", "DescriptorsRunningOut", "TargetDown"})
		if r.Verdict != result.Fail || r.ExitCode != 1 || r.Unrelated != 1 || len(r.Proven) != 1 || r.Failed[0] != "DescriptorsRunningOut" || r.Untried[0] != "TargetDown" {
			t.Errorf("%+v", r)
		}
	})
}

// A rule that follows from the fault may fire. The outcome then gives the reason why it may.
func TestAllowed(t *testing.T) {
	p := byName(t, "slow-disk")
	in := recordRun(t, p, scrape.Options{}, func(l *archivetest.Lab, phase string, _ time.Duration) {
		v := 0.002
		if phase == "slow" {
			v = 0.05
			l.Parts["etcd-0"].Observe("etcd_disk_backend_commit_duration_seconds", "", fsyncEdges, 0.1, 20)
		}
		fsync(l, v)
		l.Parts["kube-apiserver-0"].Observe("etcd_request_duration_seconds", `operation="update"`, requestEdges, 3*v, 50)
	})
	j := judged(t, p, in)
	o := j.Outcome("APIServerEtcdSlow")
	if j.Verdict != result.Pass || o.Part != MayFire || !o.Fired || !strings.Contains(o.Why, "two fsyncs") {
		t.Errorf("%s %q: %+v", j.Verdict, j.Reasons, o)
	}
}

// An incomplete run proves nothing, and neither does silence without data.
func TestInconclusiveProofs(t *testing.T) {
	p := byName(t, "slow-path")
	sound := slowPath(t, 0, scrape.Options{}, nil)
	for why, change := range map[string]func(*rundir.Recorded){
		"the run was interrupted":      func(in *rundir.Recorded) { in.Run.Interrupted = true },
		"the environment failed: gone": func(in *rundir.Recorded) { in.Run.Failure = "gone" },
		"unexpected exit: kube-scheduler-0 at": func(in *rundir.Recorded) {
			in.Timeline = append(in.Timeline, result.Event{Time: sound.Run.Started.Add(20 * time.Second), Kind: "exit", Name: "kube-scheduler-0"})
		},
		"generator saturated":       func(in *rundir.Recorded) { in.Measurements.Generator.Saturated = []string{"generator saturated"} },
		"phase link did not finish": func(in *rundir.Recorded) { in.Measurements.Phases = in.Measurements.Phases[:2] },
		"fault networkDelay, due 1s after the start, never": func(in *rundir.Recorded) {
			in.Run.MissedFaults = []string{"fault networkDelay, due 1s after the start, never began"}
		},
	} {
		in := *sound
		in.Timeline = append([]result.Event{}, sound.Timeline...)
		change(&in)
		j := judged(t, p, &in)
		if j.Verdict != result.NoData || len(j.Reasons) == 0 || !strings.HasPrefix(j.Reasons[0], why) {
			t.Errorf("%s: %s %q", why, j.Verdict, j.Reasons)
		}
		if r := NewReport([]Judged{j}, []string{"EtcdWALFsyncSlow"}); r.Verdict != result.NoData || r.ExitCode != 3 || len(r.Untried) != 1 {
			t.Errorf("%s: %+v", why, r)
		}
	}
	drop := []string{"etcd_request_duration_seconds"}
	j := judged(t, p, slowPath(t, 0, scrape.Options{Drop: drop}, nil))
	if o := j.Outcome("APIServerEtcdSlow"); j.Verdict != result.NoData || o.Verdict != result.NoData || !strings.Contains(o.Why, "etcd_request_duration_seconds_bucket was not recorded") {
		t.Errorf("%s %q: %+v", j.Verdict, j.Reasons, o)
	}
}

// A rule with a range of an hour resolves only in the simulated time after the run. Its cause is the second of two
// faults.
func TestResolvesInCalm(t *testing.T) {
	p := byName(t, "peers")
	in := recordRun(t, p, scrape.Options{}, func(l *archivetest.Lab, phase string, at time.Duration) {
		fsync(l, 0.002)
		rtt := 0.001
		if phase == "links" {
			rtt = 0.08
		}
		for _, name := range []string{"etcd-0", "etcd-1", "etcd-2"} {
			c := l.Parts[name]
			c.Add(`etcd_network_peer_round_trip_time_seconds_sum{To="a"}`, rtt)
			c.Add(`etcd_network_peer_round_trip_time_seconds_count{To="a"}`, 1)
			changes := 0.0
			if phase == "freezes" && (at == 10*time.Second || at == 30*time.Second) {
				changes = 1
			}
			c.Add("etcd_server_leader_changes_seen_total", changes)
		}
	})
	j := judged(t, p, in)
	o := j.Outcome("EtcdLeaderChanges")
	if j.Verdict != result.Pass || !o.InCalm || *o.Latency > *o.Floor {
		t.Fatalf("%s %q: %+v", j.Verdict, j.Reasons, o)
	}
	if length := *o.ResolvedAt - *o.FiredAt; length < 3500 || length > 3700 {
		t.Errorf("the alert fired for %v s, want about 3600 s", length)
	}
}

// The proof hides recorded series, so that the rules about the monitoring fire. Without hidden series, no rule fires in
// the same run.
func TestMonitoring(t *testing.T) {
	in := recordRun(t, byName(t, "monitoring"), scrape.Options{}, func(l *archivetest.Lab, _ string, _ time.Duration) { fsync(l, 0.002) })
	j := judged(t, byName(t, "monitoring"), in)
	if j.Verdict != result.Pass {
		t.Errorf("monitoring: %s %q", j.Verdict, j.Reasons)
	}
	if o := j.Outcome("TargetAbsent"); *o.Latency > *o.Floor || o.Of[0] != "kube-scheduler" {
		t.Errorf("%+v", o)
	}
	calm := judged(t, byName(t, "healthy"), in)
	r := NewReport([]Judged{j, calm}, []string{"TargetAbsent", "MetricsMissing"})
	if r.Verdict != result.Pass || r.HealthySeconds < 600 || len(r.Proven) != 2 {
		t.Errorf("%s: %q, %v s", r.Verdict, calm.Reasons, r.HealthySeconds)
	}
	// Silence in a shorter run proves nothing.
	in.Measurements.Phases = slices.Clone(in.Measurements.Phases)
	in.Measurements.Phases[1].End = in.Measurements.Phases[1].End.Add(-time.Minute)
	short := judged(t, byName(t, "healthy"), in)
	if short.Verdict != result.NoData || !slices.Equal(short.Reasons, []string{"phase morning did not finish"}) {
		t.Errorf("a shorter run: %s %q", short.Verdict, short.Reasons)
	}
}

// With `since`, latency counts from the time at which the rule's data shows the cause.
func TestSince(t *testing.T) {
	p := byName(t, "nodes")
	in := recordRun(t, p, scrape.Options{}, func(l *archivetest.Lab, phase string, at time.Duration) {
		fsync(l, 0.002)
		kcm, unhealthy := l.Parts["kube-controller-manager-0"], 0.0
		switch {
		case phase == "lost" && at == 30*time.Second: // the grace period
			unhealthy = 10
		case phase == "back" && at == scraped:
			unhealthy = -10
		case phase == "lost" && at > 45*time.Second && at <= 55*time.Second:
			kcm.Add("taint_eviction_controller_pod_deletions_total", 100)
		}
		kcm.Add(`node_collector_unhealthy_nodes_in_zone{zone="a"}`, unhealthy)
		if phase == "first" && at == scraped {
			kcm.Add(`node_collector_zone_size{zone="a"}`, 20)
		}
		left := 0.0
		if phase == "lost" && at == 60*time.Second {
			left = 150
		} else if phase == "back" && at == 2*scraped {
			left = -150
		}
		l.Parts["kube-scheduler-0"].Add(`scheduler_pending_pods{queue="unschedulable"}`, left)
	})
	j := judged(t, p, in)
	if j.Verdict != result.Pass {
		t.Fatalf("%s %q", j.Verdict, j.Reasons)
	}
	i := slices.IndexFunc(in.Measurements.Phases, func(x result.Phase) bool { return x.Name == "lost" })
	lost := in.Measurements.Phases[i].Start.Sub(in.Run.Started).Seconds()
	for rule, after := range map[string]float64{"NodesNotReady": 30, "EvictionStorm": 50, "SchedulerPodsUnschedulable": 60} {
		if o := j.Outcome(rule); *o.CauseAt != lost+after || *o.Latency > *o.Floor {
			t.Errorf("%s: cause %v s after the loss, latency %v of %v", rule, *o.CauseAt-lost, *o.Latency, *o.Floor)
		}
	}
}
