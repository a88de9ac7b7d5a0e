package gate

import (
	"slices"
	"testing"
	"time"

	"github.com/stormglass/stormglass/loadgen/result"
)

// killed is the timeline of an etcd member that is killed at 10 s, started at
// 15 s and ready at 18 s.
func killed(at func(float64) time.Time) []result.Event {
	return []result.Event{
		{Time: at(0), Kind: "lease", Name: "kube-scheduler-0"},
		{Time: at(9.95), Kind: "exit", Name: "etcd-0"},
		{Time: at(10), Kind: "fault-begin", Name: "kill", Fault: "1", On: []string{"etcd-0"}},
		{Time: at(15), Kind: "fault-end", Name: "kill", Fault: "1"},
		{Time: at(15), Kind: "start", Name: "etcd-0"},
		{Time: at(18), Kind: "ready", Name: "etcd-0"},
	}
}

// A fault excuses its own components, until they are ready again, and those
// that cannot do without them; nobody else and no other time.
func TestAFaultExcusesWhatItKeptAway(t *testing.T) {
	zero := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	at := func(s float64) time.Time { return zero.Add(time.Duration(s * float64(time.Second))) }
	all := outages(killed(at))
	for _, c := range []struct {
		component string
		at        float64
		want      string
	}{
		{"etcd-0", 8, ""}, {"etcd-0", 9.9, "kill"}, {"etcd-0", 17, "kill"}, {"etcd-0", 30, "kill"}, {"etcd-0", 34, ""},
		{"etcd-1", 12, ""}, {"kube-apiserver-0", 12, ""}, {"kube-scheduler-0", 12, "kill"}, {"kube-scheduler-0", 31, ""},
	} {
		if got := away(all, c.component, at(c.at), at(c.at)); got != c.want {
			t.Errorf("%s at %v s: excused by %q, want %q", c.component, c.at, got, c.want)
		}
	}
	// A controller manager that ends for want of its lease is started again.
	lost := append(killed(at), result.Event{Time: at(40), Kind: "exit", Name: "kube-controller-manager-0"},
		result.Event{Time: at(52), Kind: "ready", Name: "kube-controller-manager-0"}, result.Event{Time: at(90), Kind: "exit", Name: "kube-apiserver-0"})
	for _, c := range []struct {
		component string
		at        float64
		want      string
	}{{"kube-controller-manager-0", 45, "kill"}, {"kube-controller-manager-0", 70, ""}, {"kube-apiserver-0", 90, ""}} {
		if got := away(outages(lost), c.component, at(c.at), at(c.at)); got != c.want {
			t.Errorf("%s at %v s: excused by %q, want %q", c.component, c.at, got, c.want)
		}
	}
	slow := []result.Event{{Time: at(1), Kind: "fault-begin", Name: "slowFsync", Fault: "1", On: []string{"etcd-0"}}}
	if got := outages(slow); len(got) != 0 {
		t.Errorf("a slow fsync excuses %v", got)
	}
}

// An objective of faults has no data without any, takes the worst of several,
// and never passes for a load that did not come back.
func TestObjectivesOfFaults(t *testing.T) {
	half, long := 0.5, 12.5
	fault := func(id string, loads ...result.LoadRecovery) result.FaultRecovery {
		return result.FaultRecovery{ID: id, Kind: "kill", On: []string{"etcd-0"}, Phase: "storm", Loads: loads}
	}
	quick := result.LoadRecovery{Load: "patch", Affected: true, ErrorWindow: 0.5, Failed: 3, FirstSuccess: &half, Back: &half}
	slow := result.LoadRecovery{Load: "patch", Affected: true, ErrorWindow: 13, Failed: 9, FirstSuccess: &long, Back: &long}
	never := result.LoadRecovery{Load: "patch", Affected: true, ErrorWindow: 20, Failed: 40, Open: true, BackAtLeast: &long}
	silent := result.LoadRecovery{Load: "patch", Silent: true, Detail: "no request ended while the fault was there"}
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
		{"lease-failover", "17s", []result.FaultRecovery{{ID: "1", Phase: "storm", LeaseFailover: &long}, {ID: "2", Phase: "storm", Unled: []string{"etcd"}}}, result.Pass, 12.5},
		{"lease-failover", "17s", []result.FaultRecovery{{ID: "1", Phase: "storm", LeaseFailover: &long}, {ID: "2", Phase: "storm", Unled: []string{"kube-scheduler"}}}, result.NoData, 0},
	} {
		o := find(c.objective)
		compiled := Compiled{objective: *o, op: "<=", order: []string{"storm"}}
		compiled.Over, compiled.expects = []string{"storm"}, []place{{"storm", "patch"}}
		if len(o.kinds) == 0 {
			compiled.expects = nil
		}
		compiled.bound = bound(t, c.max)
		rec := Recorded{Measurements: result.Measurements{Phases: []result.Phase{{Name: "storm"}}}}
		if c.faults != nil {
			rec.Recovery = &result.Recovery{Faults: c.faults}
		}
		g, err := compiled.judge(t.Context(), nil, rec.phases(), rec)
		if err != nil {
			t.Fatal(err)
		}
		expect(t, c.objective+" max "+c.max, g, c.want, c.value, "")
		if open := c.want == result.Fail && slices.ContainsFunc(c.faults, func(f result.FaultRecovery) bool { return len(f.Loads) > 0 && f.Loads[0].Open }); g.AtLeast != open {
			t.Errorf("%s max %s: only a least value: %v, want %v", c.objective, c.max, g.AtLeast, open)
		}
	}
}

// Without a pulse no relist was counted, and that is not none.
func TestAStormNobodyCountedIsNoPass(t *testing.T) {
	compiled := Compiled{objective: *find("relist-storm"), op: "<=", bound: 1000, order: []string{"storm"}}
	compiled.Over = []string{"storm"}
	rec := Recorded{
		Measurements: result.Measurements{Phases: []result.Phase{{Name: "storm"}}},
		Recovery:     &result.Recovery{Faults: []result.FaultRecovery{{ID: "1", Kind: "kill", Phase: "storm"}}},
	}
	for lack, want := range map[string]result.Verdict{"": result.Pass, "the run has no pulse": result.NoData} {
		if lack != "" {
			rec.Recovery.Missing = []string{lack}
		}
		g, err := compiled.judge(t.Context(), nil, rec.phases(), rec)
		if err != nil {
			t.Fatal(err)
		}
		if rec.Recovery.Missing = nil; g.Verdict != want {
			t.Errorf("missing %q: %s, want %s", lack, g.Verdict, want)
		}
	}
}

// A history proves nothing by what could not be judged.
func TestAHistoryThatWasNotJudgedIsNoPass(t *testing.T) {
	good := result.History{Load: "registers", Writes: result.HistoryOperations{Invoked: 9, Succeeded: 9}, Linearizable: "yes"}
	unjudged := good
	unjudged.Unjudged = []string{"the final list: refused"}
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
			rec := Recorded{Measurements: result.Measurements{Phases: []result.Phase{{Name: "storm"}}, Histories: c.histories}}
			g, err := compiled.judge(t.Context(), nil, rec.phases(), rec)
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
