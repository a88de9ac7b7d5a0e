package capacity

import (
	"testing"

	"github.com/stormglass/stormglass/loadgen/result"
)

// trial is one in which controllers wait for their own limit all the time.
func trial(outcome Outcome, load, machine float64) result.Trial {
	return result.Trial{Load: load, Outcome: nameOf(outcome), Uses: []result.Use{
		{Resource: "client-limit", Component: "kube-controller-manager", Share: 1},
		{Resource: "machine", Share: machine},
	}}
}

func TestBottleneck(t *testing.T) {
	for _, c := range []struct {
		name   string
		trials []result.Trial
		want   string
	}{
		{"what is full at a light load too is passed over", []result.Trial{trial(Good, 10, 0.3), trial(Bad, 160, 0.99), trial(Good, 80, 0.9)}, "machine"},
		{"what was never seen lightly loaded is not", []result.Trial{trial(Good, 100, 0.9), trial(Bad, 160, 0.99)}, "client-limit"},
		{"no trial held", []result.Trial{trial(Bad, 160, 0.99)}, "client-limit"},
		{"nothing else is full", []result.Trial{trial(Good, 10, 0.1), trial(Bad, 160, 0.5)}, ""},
		{"nothing gave way", []result.Trial{trial(Good, 10, 0.1)}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := ""
			if b := bottleneck(c.trials); b != nil {
				got = b.Resource
			}
			if got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}
