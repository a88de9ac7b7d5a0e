package main

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stormglass/stormglass/loadgen/result"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

// small is an incident on few nodes and in a short time: the variant in which the
// failure shows, or the one that has more to lose.
type small struct {
	variant string
	set     []string
}

// incidents are the scenarios with variants, or with more than one fault, in
// their small versions. `make incidents` runs the full ones.
func incidents() map[string]small {
	second := "record.interval=1s" // a signal needs three samples in each phase
	return map[string]small{
		"fd-exhaustion": {"limit-1024", []string{
			second, "nodes.count=5", "phases.steady.for=8s", "phases.rollout.for=15s", "phases.after.for=8s",
			"phases.rollout.load.agents.count=1000", "phases.rollout.load.agents.rate=200/s", "phases.rollout.actions.web.replicas=20",
		}},
		"stacked-etcd": {"stacked", []string{second, "phases.steady.for=8s", "phases.contention.for=10s", "phases.contention.faults.0.writers=48", "phases.after.for=10s"}},
		"slow-fsync":   {"25ms", []string{second, "phases.steady.for=8s", "phases.slow.for=8s", "phases.after.for=8s"}},
		"scheduler-scale": {"percent-10", []string{
			second, "nodes.count=50", "controlPlane.controllerManager.qps=20", "controlPlane.controllerManager.burst=30",
			"phases.steady.for=6s", "phases.schedule.actions.apart.replicas=200", "phases.after.for=8s",
		}},
		"thundering-herd": {"unlimited", []string{
			second, "nodes.count=4", "nodes.leaseRenew=2s", "controlPlane.controllerManager.flags.node-monitor-grace-period=8s",
			"phases.fill.actions.web.replicas=40", "phases.steady.for=8s", "phases.after.for=8s",
		}},
		"leader-changes": {"timers-default", []string{
			second, "phases.steady.for=8s", "phases.slow-network.for=8s", "phases.freezes.for=14s", "phases.freezes.faults.0.repeat=1",
			"phases.freezes.faults.0.every=0s", "phases.freezes.faults.0.for=4s", "phases.slow-network.faults.0.delay=100ms", "phases.after.for=10s",
		}},
		"slow-verbs":   {"slow-disk", []string{second, "phases.steady.for=8s", "phases.cause.for=8s", "phases.after.for=8s", "background.list.objects=100"}},
		"watch-storm":  {"watch-list", []string{second, "phases.flood.load.crowd.count=300", "phases.steady.for=6s", "phases.storm.for=45s", "phases.after.for=8s"}},
		"rollout-hops": {"qps-20", []string{second, "nodes.count=20", "phases.steady.for=6s", "phases.rollout.actions.web.replicas=200", "phases.after.for=8s"}},
		"node-loss": {"30-percent", []string{
			second, "nodes.count=10", "nodes.leaseRenew=2s", "controlPlane.controllerManager.flags.node-monitor-grace-period=8s",
			"phases.fill.actions.web.replicas=40", "phases.steady.for=8s", "phases.after.for=8s",
		}},
		"component-loss": {"standbys", append(quickLeases("scheduler", "controllerManager"),
			second, "phases.steady.for=6s", "phases.api-server.for=12s", "phases.etcd-leader.for=12s", "phases.scheduler.for=15s",
			"phases.scheduler.faults.0.for=13s", "phases.controllers.for=15s", "phases.controllers.faults.0.for=13s", "phases.after.for=8s",
		)},
		"etcd-kills":   {"", []string{second, "phases.steady.for=5s", "phases.one-by-one.for=25s", "phases.one-by-one.faults.0.repeat=3", "phases.after.for=8s"}},
		"etcd-restore": {"", []string{second, "phases.steady.for=5s", "phases.after.for=8s"}},
	}
}

// quickLeases move in 6 s and two retries of up to 2.2 s.
func quickLeases(fields ...string) (set []string) {
	for _, field := range fields {
		for flag, value := range map[string]string{"lease-duration": "6s", "renew-deadline": "4s", "retry-period": "1s"} {
			set = append(set, "controlPlane."+field+".flags.leader-elect-"+flag+"="+value)
		}
	}
	return set
}

// TestIncidents runs each incident small, on a plane of its own: the fault is
// real, its metric moves and comes back, and nothing acknowledged is lost. How
// long things take here is a matter of the machine, so gates are asked, not the
// verdict, which a busy machine may keep back.
func TestIncidents(t *testing.T) {
	for name, small := range incidents() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join(t.TempDir(), "run")
			args := []string{name, "--out", dir}
			if small.variant != "" {
				args = append(args, "--variant", small.variant)
			}
			for _, set := range small.set {
				args = append(args, "--set", set)
			}
			p := startRun(t, args...)
			if code := p.wait(); code != 0 && code != 1 && code != 3 {
				t.Fatalf("exit code %d\n%s", code, strings.Join(p.said, "\n"))
			}
			r := readResult(t, dir)
			if len(r.Gates) == 0 {
				t.Error("no gate was judged")
			}
			for _, g := range r.Gates {
				if g.Verdict != result.Pass && !(g.Objective == "signal-moved" && tripled(r.Signals, g.Detail)) {
					t.Errorf("gate %s: %s (%s)\n%s", g.Name, g.Verdict, g.Detail, strings.Join(r.Reasons, "\n"))
				}
			}
		})
	}
}

// tripled tells whether the signal that a gate's detail is about is three times
// what it was: on a busy machine three times its noise may be more than that.
func tripled(signals []result.Signal, detail string) bool {
	return slices.ContainsFunc(signals, func(s result.Signal) bool {
		return s.Moved != nil && s.Steady.Mean > 0 && s.Extreme >= 3*s.Steady.Mean && strings.Contains(detail, "signal "+s.Name+":")
	})
}

// TestEveryIncidentHasASmallVersion keeps the list above and the catalogue equal.
func TestEveryIncidentHasASmallVersion(t *testing.T) {
	known := incidents()
	for _, name := range scenario.Names() {
		s, err := scenario.Read(name, nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, ok := known[name]; !ok && strings.HasPrefix(s.Description, "Incident") {
			t.Errorf("%s has no small version", name)
		}
	}
}
