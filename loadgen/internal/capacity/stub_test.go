package capacity

import (
	"context"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stormglass/stormglass/internal/stubapi"
	"github.com/stormglass/stormglass/loadgen/internal/judge/gate"
	"github.com/stormglass/stormglass/loadgen/internal/load"
	"github.com/stormglass/stormglass/loadgen/internal/load/kind"
	"github.com/stormglass/stormglass/loadgen/internal/plan"
	"github.com/stormglass/stormglass/loadgen/internal/rundir"
	"github.com/stormglass/stormglass/loadgen/result"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

var searches = flag.Int("searches", 4, "searches against the stub for each spread; 15 are in docs/reference/capacity.md")

const (
	stubHold  = 5 * time.Second
	stubBound = 100 * time.Millisecond
)

const stubText = `apiVersion: stormglass/v1alpha1
kind: Scenario
name: stub
phases: [{name: hold, for: 5s}]
background: [{name: reads, kind: requests, verb: get, rate: 50/s}]
capacity: {field: background.reads.rate, from: 50/s, to: 5000/s}
gates: [{name: latency, objective: request-latency, load: reads, max: 100ms}]
`

// server responds to `rate` requests a second, one after another.
func server(rate float64) stubapi.Policy {
	var mu sync.Mutex
	var free time.Time
	return func(r stubapi.Request) stubapi.Answer {
		mu.Lock()
		defer mu.Unlock()
		if free.Before(r.At) {
			free = r.At
		}
		free = free.Add(time.Duration(float64(time.Second) / rate))
		return stubapi.Answer{After: free.Sub(r.At)}
	}
}

// capacityOf returns the load whose p99 reaches the bound at the end of a trial. rate is the number of requests per
// second to which the server responds; requests above this rate queue up.
func capacityOf(rate float64) float64 {
	return rate * (1 + stubBound.Seconds()/(0.99*stubHold.Seconds()))
}

// against runs one trial in virtual time with the real load engine and the real gates. offered is the load, and rate is
// the rate at which the server responds.
func against(t *testing.T, offered, rate float64) Outcome {
	t.Helper()
	var trial result.Trial
	synctest.Test(t, func(t *testing.T) {
		s, err := scenario.Parse("stub.yaml", []byte(stubText), []string{fmt.Sprintf("background.reads.rate=%.1f/s", offered)})
		if err != nil {
			t.Fatal(err)
		}
		addGates(s)
		s.Gates = slices.DeleteFunc(s.Gates, func(g scenario.Gate) bool { return g.Expr != "" }) // this test scrapes nothing
		stub, err := stubapi.Start(stubapi.Options{Listener: stubapi.NewPipes(), NoRecord: true})
		if err != nil {
			t.Fatal(err)
		}
		defer stub.Close()
		made, err := kind.Make(plan.Of(s), load.Target{Config: stub.Config(), Namespace: "storm", Seed: 1}, "")
		if err != nil {
			t.Fatal(err)
		}
		reads := made[0]
		if err := reads.Prepare(t.Context()); err != nil {
			t.Fatal(err)
		}
		stub.SetPolicy(server(rate))
		ctx, cancel := context.WithTimeout(t.Context(), stubHold)
		defer cancel()
		m := result.Measurements{Phases: []result.Phase{{Name: "hold", Start: time.Now(), End: time.Now().Add(stubHold)}}}
		reads.BeginPhase("hold", time.Now())
		if err := reads.Run(ctx); err != nil {
			t.Fatal(err)
		}
		reads.AddTo(&m)
		gates, err := gate.Compile(plan.Of(s))
		if err != nil {
			t.Fatal(err)
		}
		res, err := gate.Judge(t.Context(), gates, &rundir.Recorded{Measurements: m})
		if err != nil {
			t.Fatal(err)
		}
		take(&trial, res)
	})
	return Outcome(trial.Outcome)
}

// TestStubOfKnownCapacity searches with the real load engine against a server with a known capacity that varies by a
// spread from trial to trial.
func TestStubOfKnownCapacity(t *testing.T) {
	t.Log("seed 1")
	for _, spread := range []float64{0, 0.02, 0.04, 0.08} {
		t.Run(fmt.Sprint(spread), func(t *testing.T) {
			rng := rand.New(rand.NewPCG(1, uint64(1000*spread)))
			var errs []float64
			var trials []int
			covered := 0
			for range *searches {
				rate := 120 * math.Exp(1.4*rng.Float64())
				s, err := New(Default(50, 5000))
				if err != nil {
					t.Fatal(err)
				}
				for {
					offered, more := s.Next()
					if !more {
						break
					}
					s.Saw(offered, against(t, offered, rate*math.Exp(spread*rng.NormFloat64())))
				}
				e, truth := s.Estimate(), capacityOf(rate)
				if e.Low <= truth && truth <= e.High {
					covered++
				}
				errs, trials = append(errs, math.Abs(e.Median/truth-1)), append(trials, e.Trials)
			}
			slices.Sort(errs)
			slices.Sort(trials)
			n := len(errs)
			t.Logf("%d of %d intervals contain the capacity, median error %.1f%%, median trials %d, most %d", covered, n, 100*errs[n/2], trials[n/2], trials[n-1])
			if covered < n*3/4 || errs[n/2] > 0.06 {
				t.Error("the searches do not find the known capacity of the server")
			}
		})
	}
}
