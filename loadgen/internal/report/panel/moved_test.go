package panel

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stormglass/stormglass/dashboards"
	"github.com/stormglass/stormglass/loadgen/internal/report/chart"
	"github.com/stormglass/stormglass/loadgen/result"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

// under is a run of ten minutes with one cause in its sixth minute.
func under(c Cause) Run {
	c.Begin, c.End = at(300), at(360)
	return Run{Span: span, Phases: []Mark{{"steady", at(0), at(300)}, {"fault", at(300), at(360)}}, Causes: []Cause{c}}
}

// one returns a line for every query.
func one(v func(second float64) float64) chart.Source {
	return sourceFunc(func(expr string, start, end time.Time, step time.Duration) ([]chart.Series, error) {
		return []chart.Series{series("instance", "etcd-0", start, end, step, func(t time.Time) float64 { return v(t.Sub(began).Seconds()) })}, nil
	})
}

func moved(t *testing.T, src chart.Source, run Run) []Motion {
	t.Helper()
	all, err := Moved(t.Context(), src, run)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// TestMoved: a panel shows its fault if a line is elsewhere during the fault, and
// not if the line continues as before.
func TestMoved(t *testing.T) {
	by := func(times float64) chart.Source {
		return one(func(s float64) float64 {
			v := 0.04 + 0.01*math.Sin(s)
			if s >= 300 && s < 360 {
				v *= times
			}
			return v
		})
	}
	slow := under(Cause{Mark: Mark{Name: "slowFsync"}, Of: []string{"etcd"}})
	if all := moved(t, by(6), slow); len(all) < 5 {
		t.Errorf("only %d panels are about slow fsync", len(all))
	}
	for _, m := range moved(t, by(6), slow) {
		if !m.Seen || m.Claim != "slowFsync" {
			t.Errorf("not seen: %s", m)
		}
	}
	for _, m := range moved(t, by(1), slow) {
		if m.Seen {
			t.Errorf("seen although nothing happened: %s", m)
		}
	}
	if none := moved(t, well, Run{Span: span}); none != nil {
		t.Errorf("without a fault: %v", none)
	}
}

// TestMovedByChance: a tail that jumps, as a p99 of few requests does, rarely counts as the effect of a fault.
func TestMovedByChance(t *testing.T) {
	run := under(Cause{Mark: Mark{Name: "slowFsync"}})
	seen, looked := 0, 0
	for seed := range uint64(20) {
		random := rand.New(rand.NewPCG(seed, 1))
		tail := make([]float64, 601)
		for i := range tail {
			tail[i] = 0.01 * math.Exp(random.NormFloat64())
		}
		src := one(func(s float64) float64 { return tail[int(s)] })
		for _, m := range moved(t, src, run) {
			if looked++; m.Seen {
				seen++
			}
		}
	}
	if looked < 100 || seen*50 > looked {
		t.Errorf("%d of %d moved by chance, want one of fifty at most", seen, looked)
	}
	quiet := Run{Span: span, Phases: []Mark{{"steady", at(0), at(600)}}}
	counted, of, err := Calm(t.Context(), one(func(float64) float64 { return 0.01 }), quiet, 30*time.Second, time.Minute)
	if err != nil || counted != 0 || of < 100 {
		t.Errorf("of lines that rest %d of %d moved: %v", counted, of, err)
	}
}

// TestMovedShapes: a short peak of a line at rest, and a line where no line was
// before, are motions too. A step of a twentieth of the panel, a peak like those
// before, and a new line lower than others are not.
func TestMovedShapes(t *testing.T) {
	const peakAt = 320
	pulse := func(s, v float64) float64 {
		if s >= peakAt && s < peakAt+15 {
			return v
		}
		return 0
	}
	missing := math.NaN()
	for _, c := range []struct {
		name string
		log  bool
		v    []func(s float64) float64
		seen bool
	}{
		{"a peak from rest", false, []func(float64) float64{func(s float64) float64 { return pulse(s, 3) }}, true},
		{"a peak among peaks", false, []func(float64) float64{func(s float64) float64 { return math.Mod(s, 50)/15 + pulse(s, 1) }}, false},
		{"one slow request in a tail", true, []func(float64) float64{func(s float64) float64 { return 0.01 + pulse(s, 3) }}, false},
		{"a line that appears", false, []func(float64) float64{func(s float64) float64 { return cond(s > peakAt, 5, missing) }}, true},
		{"a line below others that move", false, []func(float64) float64{
			func(s float64) float64 { return 10 + 5*math.Sin(s) }, func(s float64) float64 { return cond(s > peakAt, 5, missing) },
		}, false},
		{"a twentieth of the height", false, []func(float64) float64{func(s float64) float64 { return cond(s >= 300 && s < 360, 95, 100) }}, false},
	} {
		p := dashboards.Panel{Title: "p", Kind: "timeseries", Log: c.log}
		var all []chart.Series
		for i, v := range c.v {
			s := series("instance", fmt.Sprint(i), began, at(600), 5*time.Second, func(t time.Time) float64 { return v(t.Sub(began).Seconds()) })
			all = append(all, s)
		}
		w, ok := watched(under(Cause{Mark: Mark{Name: "kill"}}), 5*time.Second, "kill")
		if !ok {
			t.Fatal("no window")
		}
		m, ok := w.motion(p, []answer{{panel: p, series: all}})
		if !ok || m.Seen != c.seen {
			t.Errorf("%s: seen %v, want %v: %s", c.name, m.Seen, c.seen, m)
		}
	}
}

func cond(is bool, then, otherwise float64) float64 {
	if is {
		return then
	}
	return otherwise
}

// TestClaims: a claim that names a component is not about a fault of another one.
func TestClaims(t *testing.T) {
	kill := Cause{Mark: Mark{Name: "kill"}, Of: []string{"kube-scheduler"}}
	for claim, want := range map[string]bool{"kill": true, "kill kube-scheduler": true, "kill etcd": false, "pause": false} {
		if kill.is(claim) != want {
			t.Errorf("%q: %v", claim, !want)
		}
	}
	for _, m := range moved(t, well, under(kill)) {
		if m.Claim == "kill etcd" || m.Claim == "kill kube-apiserver" {
			t.Errorf("a killed scheduler counts against %s", m)
		}
	}
}

// TestCauses: the timeline has the component of a cause; the scenario has how a webhook
// fails, and the loads of phases.
func TestCauses(t *testing.T) {
	s, err := scenario.Parse("s.yaml", []byte(strings.TrimSpace(`
apiVersion: stormglass/v1alpha1
kind: Scenario
name: causes
background: [{name: get, kind: requests, verb: get, rate: 1/s}]
phases:
  - {name: steady, for: 60s}
  - name: storm
    for: 60s
    faults: [{kind: webhook, resource: secrets, fails: true, ignore: true}, {kind: webhook, resource: pods, delay: 1s}]
    load:
      - {name: crowd, kind: watches, count: 3, rate: 1/s, hold: true, slow: {fraction: 1, bytesPerSecond: 1KiB, window: 64KiB}}
      - {name: lists, kind: requests, verb: list, rate: 1/s}
  - {name: after, for: 60s}
`)+"\n"), nil)
	if err != nil {
		t.Fatal(err)
	}
	phases := []result.Phase{{Name: "steady", Start: at(0), End: at(60)}, {Name: "storm", Start: at(60), End: at(120)}, {Name: "after", Start: at(120), End: at(180)}}
	run := RunOf(result.Result{Measurements: result.Measurements{Phases: phases}}, []result.Event{
		{Time: at(20), Kind: "fault-begin", Name: "kill", Fault: "f1", On: []string{"etcd-1", "etcd-2"}},
		{Time: at(30), Kind: "fault-end", Name: "kill", Fault: "f1"},
		{Time: at(61), Kind: "fault-begin", Name: "webhook", Fault: "f2"},
		{Time: at(119), Kind: "fault-end", Name: "webhook", Fault: "f2"},
	}, time.Second)
	var got []string
	for _, c := range causes(run, s, phases) {
		got = append(got, fmt.Sprint(c.Name, c.Of, c.Begin.Sub(began).Seconds(), c.End.Sub(began).Seconds(), c.Load))
	}
	want := []string{"kill[etcd] 20 30 false", "webhook[open slow] 61 119 false", "watches[slow] 60 180 true", "requests[list] 60 120 true"}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
