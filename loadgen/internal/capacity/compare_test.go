package capacity

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stormglass/stormglass/internal/exitcode"
	"github.com/stormglass/stormglass/loadgen/internal/judge/gate"
	"github.com/stormglass/stormglass/loadgen/internal/plan"
	"github.com/stormglass/stormglass/loadgen/result"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

// searched runs a search on the plane p and returns its directory.
func searched(t *testing.T, p plane, sets ...string) string {
	t.Helper()
	s := newSession(t, &p)
	s.o.Overrides = sets
	_, dir, err := s.run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestCompare(t *testing.T) {
	a := searched(t, plane{capacity: 700, spread: 0.03})
	for name, c := range map[string]struct {
		b      plane
		answer string
		code   int
	}{
		"the same":     {plane{capacity: 705, spread: 0.03}, "no difference seen", exitcode.Pass},
		"half of it":   {plane{capacity: 350, spread: 0.03}, "B is lower", exitcode.Fail},
		"a third more": {plane{capacity: 930, spread: 0.03}, "B is higher", exitcode.Pass},
		// B's search finds no capacity. There is still an answer if B's capacity can only lie further away from A's.
		"over the range":       {plane{capacity: 1e9}, "B is higher", exitcode.Pass},
		"under the range":      {plane{capacity: 1}, "B is lower", exitcode.Fail},
		"a generator to 3,000": {plane{capacity: 1e9, saturatedFrom: 3000}, "B is higher", exitcode.Pass},
		"a generator to 300":   {plane{capacity: 1e9, saturatedFrom: 300}, "could not tell", exitcode.NoData},
		"a generator to none":  {plane{capacity: 1e9, saturatedFrom: 1}, "could not tell", exitcode.NoData},
		"half of it, and less": {plane{capacity: 350, spread: 0.03, weakerAfter: 13}, "B is lower", exitcode.Fail},
		"twice of it, or less": {plane{capacity: 1400, spread: 0.03, weakerAfter: 13}, "could not tell", exitcode.NoData},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Compare([2]string{a, searched(t, c.b, "nodes.count=3")})
			if err != nil || got.Answer != c.answer || got.ExitCode != c.code {
				t.Fatalf("answer %q, exit code %d, reason %q (%v); want %q, %d", got.Answer, got.ExitCode, got.Why, err, c.answer, c.code)
			}
			found := got.Sides[1].Answer
			if unconfirmed := found == string(Unconfirmed); unconfirmed != (c.b.weakerAfter > 0) {
				t.Errorf("answer of B's search: %q", found)
			}
			if truth := c.b.capacity / 700; found == string(Found) && (got.Low > truth || truth > got.High) {
				t.Errorf("interval of B/A from %v to %v does not contain the true ratio %v", got.Low, got.High, truth)
			}
			if d := got.Differences; len(d) != 1 || d[0].Name != "settings" || d[0].B != "nodes.count=3" {
				t.Errorf("differences = %+v, want nodes.count=3", d)
			}
		})
	}
	s := newSession(t, &plane{capacity: 350, spread: 0.03})
	s.o.Scenario.Phases[0].Faults = []scenario.Fault{{Kind: "slowFsync"}}
	if _, faulty, err := s.run(t.Context()); err != nil {
		t.Error(err)
	} else if got, err := Compare([2]string{a, faulty}); err != nil || len(got.Differences) != 1 || got.Differences[0].Name != "control plane, faults and seed" {
		t.Errorf("Compare with a search under a fault: differences %+v, error %v", got.Differences, err)
	}
	s = newSession(t, &plane{capacity: 700, spread: 0.03})
	s.o.Scenario.Gates[0].Name = "other"
	if _, other, err := s.run(t.Context()); err != nil {
		t.Error(err)
	} else if _, err := Compare([2]string{a, other}); exitcode.Of(err) != exitcode.Usage || !strings.Contains(err.Error(), "differ in more than the control plane") {
		t.Errorf("Compare with a search with other gates: error %v, want a usage error", err)
	}
	if _, err := Compare([2]string{a, t.TempDir()}); exitcode.Of(err) != exitcode.Usage {
		t.Errorf("Compare with an empty directory: error %v, want a usage error", err)
	}
}

// TestGatesOfTrials checks the gates that addGates adds to a scenario.
func TestGatesOfTrials(t *testing.T) {
	for name, c := range map[string]struct{ rate, gates, want string }{
		"enough requests for a p99":        {"50/s", "[{name: latency, objective: request-latency, max: 1s, over: [hold]}]", "request-latency-upper, achieved, unsent, growth"},
		"too few requests for a p99":       {"20/s", "[{name: latency, objective: request-latency, max: 1s, over: [hold]}]", "request-latency, achieved, unsent, growth"},
		"a stricter bound of the scenario": {"50/s", "[{name: all, objective: achieved, min: 99.9%}]", "achieved, unsent, growth"},
		"weaker bounds of the scenario":    {"50/s", "[{name: all, objective: achieved, min: 50%}, {name: room, objective: unsent, max: 10%, over: [hold]}]", "achieved, unsent, achieved, unsent, growth"},
		"a gate on another phase":          {"50/s", "[{name: achieved, objective: achieved, min: 99%, over: [settle]}]", "achieved, achieved, unsent, growth"},
	} {
		text := "apiVersion: stormglass/v1alpha1\nkind: Scenario\nname: known\nphases: [{name: settle, for: 5s}, {name: hold, for: 20s}]\n" +
			"background: [{name: writes, kind: requests, verb: get, rate: " + c.rate + "}]\ngates: " + c.gates + "\n"
		s, err := scenario.Parse("known.yaml", []byte(text), nil)
		if err != nil {
			t.Fatal(err)
		}
		addGates(s)
		var got []string
		for _, g := range s.Gates {
			if g.Expr != "" {
				g.Objective = "growth"
			}
			got = append(got, g.Objective)
			if g.Objective != "request-latency" && g.Name != "all" && g.Name != "achieved" && strings.Join(g.Over, " ") != "hold" {
				t.Errorf("%s: gate %s judges the phases %v, want hold", name, g.Name, g.Over)
			}
		}
		if strings.Join(got, ", ") != c.want {
			t.Errorf("%s: objectives of the gates = %v, want %s", name, got, c.want)
		}
	}
}

// addGates adds separate gates for each load: the failure of a small load would not change the sum.
func TestGatesOfEachLoad(t *testing.T) {
	s, err := scenario.Parse("known.yaml", []byte("apiVersion: stormglass/v1alpha1\nkind: Scenario\nname: known\nphases: [{name: hold, for: 20s}]\n"+
		"background: [{name: reads, kind: requests, verb: get, rate: 1000/s}, {name: writes, kind: requests, verb: update, rate: 1/s}]\n"), nil)
	if err != nil {
		t.Fatal(err)
	}
	addGates(s)
	var got []string
	for _, g := range s.Gates {
		got = append(got, g.Name)
	}
	if want := "achieved-reads achieved-writes all-sent in-flight-steady-reads in-flight-steady-writes"; strings.Join(got, " ") != want {
		t.Errorf("names of the gates = %q, want %s", got, want)
	}
	if _, err := gate.Compile(plan.Of(s)); err != nil {
		t.Error(err)
	}
}

// TestComparisonErrorRate checks that Compare rarely reports a difference between two searches on equal planes.
func TestComparisonErrorRate(t *testing.T) {
	t.Log("seed 1")
	const pairs = 200
	for _, spread := range []float64{0.02, 0.04, 0.08} {
		rng := rand.New(rand.NewPCG(1, uint64(1000*spread)))
		search := func(truth float64) *Search {
			s, err := New(Default(50, 20_000))
			if err != nil {
				t.Fatal(err)
			}
			for load, more := s.Next(); more; load, more = s.Next() {
				outcome := Good
				if load > truth*math.Exp(spread*rng.NormFloat64()) {
					outcome = Bad
				}
				s.Saw(load, outcome)
			}
			return s
		}
		differ := 0
		for range pairs {
			truth := 100 * math.Exp(4*rng.Float64())
			if low, _, high := ratio(search(truth).shown(result.CapacitySide{}), search(truth).shown(result.CapacitySide{})); low > 1 || high < 1 {
				differ++
			}
		}
		t.Logf("spread %v: Compare reports a difference for %d of %d pairs", spread, differ, pairs)
		if differ > pairs/10 {
			t.Errorf("spread %v: more reported differences than the 90%% intervals allow", spread)
		}
	}
}
