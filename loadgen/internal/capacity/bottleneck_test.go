package capacity

import (
	"math"
	"testing"
	"time"

	"github.com/stormglass/stormglass/loadgen/internal/archivetest"
	"github.com/stormglass/stormglass/loadgen/internal/scrape"
	"github.com/stormglass/stormglass/loadgen/result"
)

// Cores exclude processor time from before the phase, such as the time for the registration of nodes.
func TestCoresOfThePhase(t *testing.T) {
	l := archivetest.New(t, scrape.Options{}, "kube-apiserver-0")
	scrape := func(used float64, after time.Duration) time.Time {
		l.Parts["kube-apiserver-0"].Add("process_cpu_seconds_total", used)
		return l.Boundary(after)
	}
	scrape(1, 0)
	start := scrape(35, 35*time.Second)
	scrape(5, 10*time.Second)
	end := scrape(5, 10*time.Second)
	cores, err := coresUsed(t.Context(), l.Archive(), start, end)
	if got := cores["kube-apiserver-0"]; err != nil || math.Abs(got-0.5) > 0.001 {
		t.Errorf("cores of kube-apiserver-0 = %v (%v), want 0.5", got, err)
	}
}

// trial returns a trial in which the controllers always wait for their client-side rate limit. machine is the
// utilisation of the machine's processors.
func trial(outcome Outcome, load, machine float64) result.Trial {
	return result.Trial{Load: load, Outcome: string(outcome), Uses: []result.Use{
		{Resource: "client-limit", Component: "kube-controller-manager", Share: 1},
		{Resource: "machine", Share: machine},
	}}
}

func TestBottleneck(t *testing.T) {
	for _, c := range []struct {
		name   string
		trials []result.Trial
		want   string
		light  bool
	}{
		{"a resource that is not full at a light load", []result.Trial{trial(Good, 10, 0.3), trial(Bad, 160, 0.99), trial(Good, 80, 0.9)}, "machine", false},
		{"a resource that is fuller than at the lightest load", []result.Trial{trial(Good, 100, 0.9), trial(Bad, 160, 0.99)}, "machine", false},
		{"no trial held", []result.Trial{trial(Bad, 160, 0.99)}, "client-limit", false},
		{"no other resource is full", []result.Trial{trial(Good, 10, 0.1), trial(Bad, 160, 0.5)}, "client-limit", true},
		{"no bad trial", []result.Trial{trial(Good, 10, 0.1)}, "", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, light := "", false
			if b := bottleneck(c.trials); b != nil {
				got, light = b.Resource, b.FullWhenLight
			}
			if got != c.want || light != c.light {
				t.Errorf("bottleneck %q, FullWhenLight %v; want %q, %v", got, light, c.want, c.light)
			}
		})
	}
}
