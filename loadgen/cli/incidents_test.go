package cli

import (
	"maps"
	"math"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stormglass/stormglass/controlplane/control"
	"github.com/stormglass/stormglass/internal/planetest"
	"github.com/stormglass/stormglass/loadgen/result"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

// small is an incident scenario with few nodes and short phases. variant is the variant that shows the failure, or the
// one in which more can go wrong.
type small struct {
	variant string
	set     []string
}

// incidents returns small versions of the scenarios with variants or with more than one fault. `make incidents` runs
// the full ones.
func incidents() map[string]small {
	second := "record.interval=1s" // a signal needs three samples in each phase
	patches, registers := "background.patch-configmap.rate=10/s", "background.registers.rate=10/s"
	return map[string]small{
		"fd-exhaustion": {"limit-1024", []string{
			second, "nodes.count=5", "phases.steady.for=6s", "phases.rollout.for=24s", "phases.after.for=6s", // 12 s were too few on a busy machine
			"phases.rollout.load.agents.count=1000", "phases.rollout.load.agents.rate=200/s", "phases.rollout.actions.web.replicas=20",
		}},
		"stacked-etcd": {"stacked", []string{second, "phases.steady.for=6s", "phases.contention.for=8s", "phases.contention.faults.0.writers=48", "phases.after.for=16s"}},
		"slow-fsync":   {"100ms", []string{second, "phases.steady.for=8s", "phases.slow.for=8s", "phases.after.for=8s"}},
		"scheduler-scale": {"percent-10", []string{
			second, "nodes.count=50", "controlPlane.controllerManager.qps=20", "controlPlane.controllerManager.burst=30",
			"phases.steady.for=6s", "phases.schedule.actions.apart.replicas=200", "phases.after.for=6s",
		}},
		"thundering-herd": {"unlimited", []string{
			second, "nodes.count=4", "nodes.leaseRenew=2s", "controlPlane.controllerManager.flags.node-monitor-grace-period=8s",
			"phases.fill.actions.web.replicas=40", "phases.steady.for=6s", "phases.after.for=6s",
		}},
		"leader-changes": {"timers-default", []string{
			second, "phases.steady.for=6s", "phases.slow-network.for=6s", "phases.freezes.for=10s", "phases.freezes.faults.0.repeat=1",
			"phases.freezes.faults.0.every=0s", "phases.freezes.faults.0.for=4s", "phases.slow-network.faults.0.delay=200ms", "phases.after.for=8s",
		}},
		"slow-verbs":   {"slow-disk", []string{second, "phases.steady.for=8s", "phases.cause.for=8s", "phases.after.for=8s", "background.list.objects=100"}},
		"watch-storm":  {"watch-list", []string{second, "phases.flood.load.crowd.count=300", "phases.steady.for=6s", "phases.storm.for=45s", "phases.after.for=6s"}},
		"rollout-hops": {"qps-20", []string{second, "nodes.count=20", "phases.steady.for=6s", "phases.rollout.actions.web.replicas=200", "phases.after.for=6s"}},
		"node-loss": {"30-percent", []string{
			second, "nodes.count=10", "nodes.leaseRenew=2s", "controlPlane.controllerManager.flags.node-monitor-grace-period=8s",
			"phases.fill.actions.web.replicas=40", "phases.steady.for=6s", "phases.after.for=6s",
		}},
		// A run of a CronJob is lost if it is active, or begins, before the failed nodes are noticed: the run of the next
		// minute is missed.
		"workloads-node-loss": {"as-is", []string{
			second, "nodes.count=10", "nodes.leaseRenew=2s", "controlPlane.controllerManager.flags.node-monitor-grace-period=8s",
			"phases.fill.actions.web.replicas=20", "phases.fill.actions.db.replicas=10", "phases.fill.actions.sync.runFor=54s",
			"phases.storm.for=80s", // if the nodes fail just after a Job of sync ended, the run that is missed counts as missed 76 s later
			"phases.steady.actions.impatient.replicas=10", "phases.after.for=8s",
		}},
		"component-loss": {"standbys", []string{
			second, patches, registers, "phases.steady.for=8s", "phases.api-server.for=8s", "phases.api-server.faults.0.for=5s", "phases.etcd-leader.for=8s", "phases.etcd-leader.faults.0.for=5s",
			// Leases move up to 24 s after their holders were lost.
			"phases.scheduler.for=34s", "phases.scheduler.faults.0.for=30s", "phases.controllers.for=34s", "phases.controllers.faults.0.for=30s", "phases.after.for=8s",
		}},
		"etcd-kills": {"", []string{
			second, patches, registers, "phases.steady.for=6s", "phases.one-by-one.for=16s", "phases.one-by-one.faults.0.repeat=3", "phases.one-by-one.faults.0.every=5s",
			"phases.one-by-one.faults.0.for=2s", "phases.quorum-lost.for=12s", "phases.quorum-lost.faults.0.for=4s", "phases.after.for=6s",
		}},
		"crd-flood":               {"small-schemas", []string{second, "phases.calm.for=6s", "phases.flood.actions.0.count=20", "phases.after.for=6s"}},
		"conversion-webhook-down": {"fails", []string{second, "phases.steady.for=6s", "phases.broken.for=8s", "phases.after.for=6s"}},
		// A write that began without a quorum may fail after its timeout of 10 s. The load has recovered after 5 s without
		// failures.
		"etcd-restore": {"", []string{
			patches, "phases.quorum-lost.load.registers.rate=10/s", "phases.steady.for=5s", "phases.quorum-lost.for=26s", "phases.quorum-lost.faults.0.after=3s", "phases.quorum-lost.faults.0.for=5s",
			"phases.restore.for=40s", "phases.after.for=5s", // a busy machine restores for 30 s
		}},
	}
}

// TestIncidents runs the small version of each incident on its own plane. The fault must be real, its metric must move and
// return, and no acknowledged write may be lost. Times and noise depend on the machine, so the test checks the gates instead of
// the verdict; shows checks the gates on time and noise.
func TestIncidents(t *testing.T) {
	t.Parallel()
	members := func(name string) int { return catalogued(t, name).ControlPlane.Count(control.KindEtcd) }
	known := incidents()
	for _, name := range slices.Sorted(maps.Keys(known)) {
		if members(name) > 1 {
			t.Run(name, known[name].run)
		}
	}
	for name, small := range known {
		if members(name) == 1 {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				incidentTurns.take(t)
				small.run(t)
			})
		}
	}
}

func catalogued(t *testing.T, name string) *scenario.Scenario {
	t.Helper()
	s, err := scenario.Read(name, nil)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// run runs the incident that the test is named after.
func (small small) run(t *testing.T) {
	name := path.Base(t.Name())
	dir := filepath.Join(planetest.Dir(t), "run")
	if name == "stacked-etcd" { // the incident needs a real disk
		dir = filepath.Join(t.TempDir(), "run")
	}
	args := []string{"run", "--controlplane", plane.Binary, name}
	if small.variant != "" {
		args = append(args, "--variant", small.variant)
	}
	for _, set := range small.set {
		args = append(args, "--set", set)
	}
	p := startLoadgen(t, slices.Concat(args, []string{"--out", dir})...)
	if code := p.wait(); code != 0 && code != 1 && code != 3 {
		t.Fatalf("exit code %d\n%s", code, strings.Join(p.said, "\n"))
	}
	if kinds := causes()[name]; kinds != nil {
		diagnosed(t, dir, kinds)
	}
	r := readResult(t, dir)
	wantAsForetold(t, dir, args, r)
	if len(r.Gates) == 0 {
		t.Error("the run judged no gate")
	}
	for _, g := range r.Gates {
		// On a machine that is too busy, the steady phase is too noisy to compare with, the API server may end watches of clients that
		// are late, and the run does not pass.
		noisy := planetest.Starved(r) && r.Verdict != result.Pass && (g.Objective == "signal-moved" || g.Objective == "watches-open")
		if g.Verdict != result.Pass && !noisy && !shows(r, g) {
			t.Errorf("gate %s: %s (%s)\n%s", g.Name, g.Verdict, g.Detail, strings.Join(r.Reasons, "\n"))
		}
	}
}

// causes lists the kinds of cause by incident. A diagnosis of the incident names one of them, from metrics alone.
func causes() map[string][]string {
	slowDisk := []string{"slow-wal-fsync", "slow-disk"} // on a busy machine commits are slow as well
	return map[string][]string{
		"fd-exhaustion": {"descriptors"}, "slow-fsync": slowDisk, "slow-verbs": slowDisk, "component-loss": {"killed"}, "etcd-kills": {"killed"},
		"watch-storm": {"killed"}, "etcd-restore": {"etcd-restored", "killed"},
	}
}

// diagnosed checks that the diagnosis of a run names one of the kinds.
func diagnosed(t *testing.T, dir string, kinds []string) {
	t.Helper()
	d, err := diagnoseRun(t.Context(), dir, diagnoseOptions{})
	if err != nil {
		t.Error(err)
	}
	var named []string
	for _, c := range d.Causes {
		named = append(named, c.Kind+": "+c.Sentence)
	}
	if !slices.ContainsFunc(d.Causes, func(c result.Cause) bool { return slices.Contains(kinds, c.Kind) }) {
		t.Errorf("its diagnosis is %s, want one of %s\n%s", d.Answer, strings.Join(kinds, ", "), strings.Join(named, "\n"))
	}
}

// shows reports whether a failed gate still shows the effect in a way that other work on the machine cannot hide: an
// awaited event came late; a metric rose to three times its value, or recovered by two thirds, or by half on a busy
// machine, where its steady phase was too noisy, or too quiet, to say more.
func shows(r result.Result, g result.Gate) bool {
	if planetest.Unjudged(r, g) {
		return true
	}
	if g.Unit == "seconds" {
		return g.Value != nil && !g.AtLeast
	}
	return slices.ContainsFunc(r.Signals, func(s result.Signal) bool {
		if s.Moved == nil || !strings.Contains(g.Detail, "signal "+s.Name+":") {
			return false
		}
		way := math.Abs(s.Extreme - s.Steady.Mean)
		switch g.Objective {
		case "signal-moved":
			return s.Steady.Mean > 0 && s.Extreme >= 3*s.Steady.Mean
		case "signal-returned":
			most := way / 3
			if planetest.Starved(r) {
				most = way / 2 // it is nearer to its steady value than to the other
			}
			return s.Last != nil && way > 0 && math.Abs(*s.Last-s.Steady.Mean) <= most
		}
		return false
	})
}

// TestShows: shows tolerates the effects of a busy machine on a gate, and no others.
func TestShows(t *testing.T) {
	seconds, moved, last := 31.0, 2.5, 4.0
	signal := result.Signal{Name: "fsync", Steady: result.SignalWindow{Mean: 1}, Extreme: 13, Moved: &moved, Last: &last}
	half := 7.0
	for what, c := range map[string]struct {
		gate  result.Gate
		last  *float64
		shows bool
	}{
		"late":                {gate: result.Gate{Unit: "seconds", Value: &seconds}, shows: true},
		"never":               {gate: result.Gate{Unit: "seconds", Value: &seconds, AtLeast: true}},
		"no data":             {gate: result.Gate{Unit: "seconds"}},
		"withheld":            {gate: result.Gate{Verdict: result.NoData, Unit: "seconds", Withheld: &seconds}, shows: true},
		"withheld, never":     {gate: result.Gate{Verdict: result.NoData, Unit: "seconds", Withheld: &seconds, AtLeast: true}},
		"withheld, in bounds": {gate: result.Gate{Verdict: result.NoData, Unit: "ratio", Withheld: &last, Op: "<=", Bound: 5}, shows: true},
		"withheld, broken":    {gate: result.Gate{Verdict: result.NoData, Unit: "ratio", Withheld: &last, Op: "<=", Bound: 3}},
		"moved in loud noise": {gate: result.Gate{Objective: "signal-moved", Detail: "signal fsync: from 1 to 13"}, last: &last, shows: true},
		"another signal":      {gate: result.Gate{Objective: "signal-moved", Detail: "signal other: from 1 to 13"}, last: &last},
		"back by 3/4":         {gate: result.Gate{Objective: "signal-returned", Detail: "signal fsync: from 1 to 13 and then 4"}, last: &last, shows: true},
		"back by half":        {gate: result.Gate{Objective: "signal-returned", Detail: "signal fsync: from 1 to 13 and then 7"}, last: &half},
		"lost writes":         {gate: result.Gate{Objective: "lost-writes", Unit: "count", Value: &moved}, last: &last},
	} {
		s := signal
		s.Last = c.last
		if shows(result.Result{Signals: []result.Signal{s}}, c.gate) != c.shows {
			t.Errorf("%s: shows is %v", what, !c.shows)
		}
		starved := result.Result{Signals: []result.Signal{s}, BusyMachine: []string{"other programs used 1.0 of 2 processors in phase after"}}
		if got := shows(starved, c.gate); got != (c.shows || c.gate.Verdict == result.NoData || c.last == &half) {
			t.Errorf("%s, on a busy machine: shows is %v", what, got)
		}
	}
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
