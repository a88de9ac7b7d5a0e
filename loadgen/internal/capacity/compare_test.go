package capacity

import (
	"strings"
	"testing"

	"github.com/stormglass/stormglass/internal/exitcode"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

// searched is the directory of a search on a plane of a capacity.
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
		"the same":       {plane{capacity: 705, spread: 0.03}, "no difference seen", exitcode.Pass},
		"half of it":     {plane{capacity: 350, spread: 0.03}, "B is lower", exitcode.Fail},
		"a third more":   {plane{capacity: 930, spread: 0.03}, "B is higher", exitcode.Pass},
		"over the range": {plane{capacity: 1e9}, "could not tell", exitcode.NoData},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Compare([2]string{a, searched(t, c.b, "nodes.count=3")})
			if err != nil || got.Answer != c.answer || got.ExitCode != c.code {
				t.Fatalf("%s, exit %d, %s: %v", got.Answer, got.ExitCode, got.Why, err)
			}
			if truth := c.b.capacity / 700; got.Why == "" && (got.Low > truth || truth > got.High) {
				t.Errorf("B holds %v to %v of A's, and really %v", got.Low, got.High, truth)
			}
			if d := got.Differences; len(d) != 1 || d[0].Name != "settings" || d[0].B != "nodes.count=3" {
				t.Errorf("differences: %+v", d)
			}
		})
	}
	if _, err := Compare([2]string{a, t.TempDir()}); exitcode.Of(err) != exitcode.Usage {
		t.Errorf("compared with an empty directory: %v", err)
	}
}

// TestGatesOfTrials: what a trial asks besides a scenario's gates.
func TestGatesOfTrials(t *testing.T) {
	for name, c := range map[string]struct{ rate, gates, want string }{
		"a p99 that can be told":      {"50/s", "[{name: latency, objective: request-latency, max: 1s, over: [hold]}]", "request-latency-upper, achieved, unsent, growth"},
		"too few requests for it":     {"20/s", "[{name: latency, objective: request-latency, max: 1s, over: [hold]}]", "request-latency, achieved, unsent, growth"},
		"what the scenario asks more": {"50/s", "[{name: all, objective: achieved, min: 99.9%}]", "achieved, unsent, growth"},
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
			if g.Objective != "request-latency" && g.Name != "all" && strings.Join(g.Over, " ") != "hold" {
				t.Errorf("%s: gate %s is over %v", name, g.Name, g.Over)
			}
		}
		if strings.Join(got, ", ") != c.want {
			t.Errorf("%s: %v, want %s", name, got, c.want)
		}
	}
}
