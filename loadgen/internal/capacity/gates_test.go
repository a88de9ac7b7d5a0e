package capacity

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/prometheus/promql/promqltest"

	"github.com/stormglass/stormglass/loadgen/internal/archive"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

// A phase that ends by a condition may have too few requests for a p99 with 99% confidence, even if another phase has
// enough.
func TestPhaseOfUnknownLength(t *testing.T) {
	s, err := scenario.Parse("known.yaml", []byte(`apiVersion: stormglass/v1alpha1
kind: Scenario
name: known
phases:
  - {name: open, until: watchesOpen, within: 1m, load: [{name: crowd, kind: watches, count: 100, rate: 10/s}]}
  - {name: hold, for: 20s}
background: [{name: reads, kind: requests, verb: get, rate: 50/s}]
gates: [{name: latency, objective: request-latency, load: reads, max: 1s, over: [open, hold]}]
`), nil)
	if err != nil {
		t.Fatal(err)
	}
	if addGates(s); s.Gates[0].Objective != "request-latency" {
		t.Errorf("objective of the gate = %s, want request-latency", s.Gates[0].Objective)
	}
}

// The gates that addGates adds judge the achieved rate, and only in the phases with gates. They replace the default of
// minAchieved, which applies to all phases.
func TestTrialsAreJudgedByTheirOwnGates(t *testing.T) {
	for text, want := range map[string]float64{"": 0, "minAchieved: 97%\n": 0.97} {
		s, err := scenario.Parse("own.yaml", []byte(`apiVersion: stormglass/v1alpha1
kind: Scenario
name: own
phases: [{name: settle, for: 5s}, {name: hold, for: 20s}]
background: [{name: reads, kind: requests, verb: get, rate: 50/s}]
gates: [{name: latency, objective: request-latency, max: 1s, over: [hold]}]
`+text), nil)
		if err != nil {
			t.Fatal(err)
		}
		addGates(s)
		if least, _ := s.LeastAchieved(s.Background[0].MinAchieved); least != want {
			t.Errorf("with %q, minimum achieved fraction = %v, want %v", text, least, want)
		}
	}
}

// TestGrowth checks that 10 requests per second that take one second each, scraped every 5 s for 20 s, rarely exceed
// the bound by chance, and that growth has the right value for requests that pile up.
func TestGrowth(t *testing.T) {
	t.Log("seed 1")
	const phases, rate, every, seconds = 300, 10, 5, 20
	rng := rand.New(rand.NewPCG(1, 1))
	var series strings.Builder
	fmt.Fprintf(&series, "load %ds\n", every)
	add := func(load, inFlight, total string) {
		fmt.Fprintf(&series, "  stormglass_requests_in_flight{load=%q} %s\n  stormglass_requests_total{load=%q} %s\n", load, inFlight, load, total)
	}
	for i := range phases {
		var inFlight, total [seconds/every + 1]int
		for came := rng.ExpFloat64()/rate - 1; came < seconds; came += rng.ExpFloat64() / rate {
			for n := range total {
				switch at := float64(n * every); {
				case came+1 <= at:
					total[n]++
				case came <= at:
					inFlight[n]++
				}
			}
		}
		add(fmt.Sprint(i), strings.Trim(fmt.Sprint(inFlight), "[]"), strings.Trim(fmt.Sprint(total), "[]"))
	}
	add("many", "100+150x4", "0+5000x4")
	add("few", "0+7.5x4", "0+200x4")
	a, start := archive.Evaluating(promqltest.LoadedStorage(t, series.String())), time.Unix(0, 0)
	end := start.Add(seconds * time.Second)
	grows := func(load string) float64 {
		t.Helper()
		got, err := a.Instant(t.Context(), strings.NewReplacer("$load", load, "$window", archive.Window(start, end)).Replace(growth), end)
		if err != nil || len(got) != 1 {
			t.Fatalf("growth of load %s = %v, error %v", load, got, err)
		}
		return got[0].V
	}
	broken := 0
	for i := range phases {
		if grows(fmt.Sprint(i)) > bound(maxGrowth).Value {
			broken++
		}
	}
	if t.Logf("%d of %d steady phases break the bound", broken, phases); broken > phases*3/100 {
		t.Error("more than 3% of the steady phases break the bound")
	}
	for _, load := range []string{"many", "few"} { // 30 of 1,000 requests per second pile up, and 30 of 800 in total
		if got := grows(load); math.Abs(got-0.03) > 0.001 {
			t.Errorf("growth of load %s = %v, want 0.03", load, got)
		}
	}
}
