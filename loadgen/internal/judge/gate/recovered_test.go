package gate

import (
	"slices"
	"testing"
	"time"

	"github.com/stormglass/stormglass/loadgen/internal/rundir"
	"github.com/stormglass/stormglass/loadgen/result"
)

// An objective of faults has no data without faults, uses the worst of several, and never passes for a load that did
// not recover.
func TestObjectivesOfFaults(t *testing.T) {
	half, long := 0.5, 12.5
	fault := func(id string, loads ...result.LoadRecovery) result.FaultRecovery {
		return result.FaultRecovery{ID: id, Kind: "kill", On: []string{"etcd-0"}, Phase: "storm", Loads: loads}
	}
	quick := result.LoadRecovery{Load: "patch", Affected: true, ErrorWindow: 0.5, Failed: 3, FirstSuccess: &half, Back: &half}
	slow := result.LoadRecovery{Load: "patch", Affected: true, ErrorWindow: 13, Failed: 9, FirstSuccess: &long, Back: &long}
	never := result.LoadRecovery{Load: "patch", Affected: true, ErrorWindow: 20, Failed: 40, Open: true, BackAtLeast: &long}
	silent := result.LoadRecovery{Load: "patch", Silent: true, Detail: "no request ended during the fault"}
	other := result.LoadRecovery{Load: "ended before", Silent: true}
	for _, c := range []struct {
		objective, max string
		faults         []result.FaultRecovery
		want           result.Verdict
		value          float64
	}{
		{"error-window", "20s", nil, result.NoData, 0},
		{"error-window", "20s", []result.FaultRecovery{fault("1", quick), fault("2", slow)}, result.Pass, 13},
		{"time-to-first-success", "10s", []result.FaultRecovery{fault("1", quick), fault("2", slow)}, result.Fail, 12.5},
		{"time-to-first-success", "1h", []result.FaultRecovery{fault("1", never)}, result.Fail, 20},
		{"time-to-objective", "1h", []result.FaultRecovery{fault("1", quick), fault("2", never)}, result.NoData, 0},
		{"time-to-objective", "1s", []result.FaultRecovery{fault("1", quick)}, result.Pass, 0.5},
		{"time-to-objective", "10s", []result.FaultRecovery{fault("1", quick), fault("2", never)}, result.Fail, 12.5},
		{"time-to-objective", "1h", []result.FaultRecovery{fault("1", quick), fault("2", silent)}, result.NoData, 0},
		{"error-window", "10s", []result.FaultRecovery{fault("1", never)}, result.Fail, 20},
		{"error-window", "1h", []result.FaultRecovery{fault("1", never)}, result.NoData, 0},
		{"error-window", "1h", []result.FaultRecovery{fault("1", quick), fault("2", silent)}, result.NoData, 0},
		{"error-window", "1h", []result.FaultRecovery{fault("1", quick, other)}, result.Pass, 0.5},
		{"time-to-first-success", "1h", []result.FaultRecovery{fault("1", silent)}, result.NoData, 0},
		{"lease-failover", "17s", []result.FaultRecovery{fault("1", quick)}, result.NoData, 0},
		{"lease-failover", "17s", []result.FaultRecovery{fault("1", quick), {ID: "2", Phase: "storm", LeaseFailover: &long}}, result.Pass, 12.5},
		{"lease-failover", "17s", []result.FaultRecovery{{ID: "1", Phase: "storm", LeaseFailover: &long}, {ID: "2", Phase: "storm", Leaderless: []string{"etcd"}}}, result.Pass, 12.5},
		{"lease-failover", "17s", []result.FaultRecovery{{ID: "1", Phase: "storm", LeaseFailover: &long}, {ID: "2", Phase: "storm", Leaderless: []string{"kube-scheduler"}}}, result.NoData, 0},
	} {
		o := find(c.objective)
		compiled := Compiled{objective: *o, op: "<=", order: []string{"storm"}}
		compiled.Over, compiled.expects = []string{"storm"}, []place{{"storm", "patch"}}
		if o.Results == "" {
			compiled.expects = nil
		}
		compiled.bound = bound(t, c.max)
		rec := &rundir.Recorded{Measurements: result.Measurements{Phases: []result.Phase{{Name: "storm"}}}}
		if c.faults != nil {
			rec.Recovery = &result.Recovery{Faults: c.faults}
		}
		g, err := compiled.judge(t.Context(), rec, nil)
		if err != nil {
			t.Fatal(err)
		}
		expect(t, c.objective+" max "+c.max, g, c.want, c.value, "")
		if open := c.want == result.Fail && slices.ContainsFunc(c.faults, func(f result.FaultRecovery) bool { return len(f.Loads) > 0 && f.Loads[0].Open }); g.AtLeast != open {
			t.Errorf("%s max %s: only a least value: %v, want %v", c.objective, c.max, g.AtLeast, open)
		}
	}
}

// Without samples the number of relists is unknown, not zero.
func TestUncountedRelistsDoNotPass(t *testing.T) {
	compiled := Compiled{objective: *find("relist-storm"), op: "<=", bound: 1000, order: []string{"storm"}}
	compiled.Over = []string{"storm"}
	rec := &rundir.Recorded{
		Measurements: result.Measurements{Phases: []result.Phase{{Name: "storm"}}},
		Recovery:     &result.Recovery{Faults: []result.FaultRecovery{{ID: "1", Kind: "kill", Phase: "storm"}}},
	}
	for lack, want := range map[string]result.Verdict{"": result.Pass, "the run has no samples": result.NoData} {
		if lack != "" {
			rec.Recovery.Missing = []string{lack}
		}
		g, err := compiled.judge(t.Context(), rec, nil)
		if err != nil {
			t.Fatal(err)
		}
		if rec.Recovery.Missing = nil; g.Verdict != want {
			t.Errorf("missing %q: %s, want %s", lack, g.Verdict, want)
		}
	}
}

// An unjudged part of a history keeps a gate from passing.
func TestUnjudgedHistoryDoesNotPass(t *testing.T) {
	good := result.History{Load: "registers", Writes: result.HistoryOperations{Invoked: 9, Succeeded: 9}, Linearizable: "yes"}
	unjudged := good
	unjudged.Unjudged = []string{"list the registers at the end: refused"}
	lost := unjudged
	lost.LostWrites, lost.ViolationCount = 2, 2
	for name, c := range map[string]struct {
		histories []result.History
		want      result.Verdict
		value     float64
	}{
		"none": {nil, result.NoData, 0}, "good": {[]result.History{good}, result.Pass, 0},
		"unjudged": {[]result.History{unjudged}, result.NoData, 0}, "lost": {[]result.History{lost}, result.Fail, 2},
	} {
		for _, objective := range []string{"lost-writes", "history-violations"} {
			compiled := Compiled{objective: *find(objective), op: "<=", order: []string{"storm"}, expects: []place{{"storm", "registers"}}}
			compiled.Over = []string{"storm"}
			rec := &rundir.Recorded{Measurements: result.Measurements{Phases: []result.Phase{{Name: "storm"}}, Histories: c.histories}}
			g, err := compiled.judge(t.Context(), rec, nil)
			if err != nil {
				t.Fatal(err)
			}
			expect(t, objective+" of "+name, g, c.want, c.value, "")
		}
	}
}

func bound(t *testing.T, text string) float64 {
	t.Helper()
	d, err := time.ParseDuration(text)
	if err != nil {
		t.Fatal(err)
	}
	return d.Seconds()
}
