package recovery

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stormglass/stormglass/loadgen/internal/rundir"
	"github.com/stormglass/stormglass/loadgen/result"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

func points(values ...float64) []result.SignalPoint {
	var all []result.SignalPoint
	for i, v := range values {
		all = append(all, result.SignalPoint{Time: sec(float64(i)), Value: v})
	}
	return all
}

func TestSignalsAgainstTheirNoise(t *testing.T) {
	noisy := points(9, 11, 10, 9, 11, 10) // mean 10, deviation sqrt(4/5)
	deviation := math.Sqrt(4.0 / 5)
	for name, c := range map[string]struct {
		steady, under, after []result.SignalPoint
		moved, noise         float64
		returned, floor      bool
	}{
		"up and back":         {steady: noisy, under: points(10, 20, 30, 30, 10, 10), after: points(30, 20, 10, 10, 10, 11), moved: 20 / deviation, noise: deviation, returned: true},
		"down, and stays":     {steady: noisy, under: points(1, 1, 10), after: points(1, 1, 1), moved: 9 / deviation, noise: deviation},
		"not at all":          {steady: noisy, under: points(10, 10, 10), after: points(10, 10, 10), noise: deviation, returned: true},
		"flat, then one step": {steady: points(0, 0, 0), under: points(0, 1, 1), after: points(0, 0, 0), moved: 100, noise: 0.01, returned: true, floor: true},
		"flat throughout":     {steady: points(0, 0, 0), under: points(0, 0, 0), after: points(0, 0, 0), returned: true},
		"flat at 0.1":         {steady: points(.1, .1, .1), under: points(.1, .1, .1), after: points(.1, .1, .1), noise: 0.001, returned: true, floor: true},
		"a tenth is left":     {steady: noisy, under: points(110, 110, 110), after: points(110, 100, 19), moved: 100 / 1.1, noise: 1.1, floor: true, returned: true},
		"a fifth is left":     {steady: noisy, under: points(110, 110, 110), after: points(10, 10, 30), moved: 100 / 1.1, noise: 1.1, floor: true},
	} {
		t.Run(name, func(t *testing.T) {
			s := judge(scenario.Signal{Name: "s", After: []string{"after"}}, c.steady, c.under, c.after)
			if s.Moved == nil || s.Returned == nil {
				t.Fatalf("not judged: %+v", s)
			}
			if math.Abs(*s.Moved-c.moved) > 1e-9 || math.Abs(s.Noise-c.noise) > 1e-12 || s.Floor != c.floor {
				t.Errorf("moved by %v noises of %v (floor: %v), want %v of %v (%v)", *s.Moved, s.Noise, s.Floor, c.moved, c.noise, c.floor)
			}
			if *s.Returned != c.returned {
				t.Errorf("returned is %v: last third %v, steady %v", *s.Returned, *s.Last, s.Steady.Mean)
			}
		})
	}
}

func TestTooFewSamplesAreNotJudged(t *testing.T) {
	s := judge(scenario.Signal{}, points(1, 1), points(5, 5, 5), nil)
	if s.Moved != nil || s.Returned != nil || !strings.Contains(s.Detail, "2 samples in the steady phases") {
		t.Errorf("judged by two samples: %+v", s)
	}
	s = judge(scenario.Signal{After: []string{"after"}}, points(1, 1, 1), points(5, 5, 5), points(1))
	if s.Moved == nil || s.Returned != nil || s.Detail == "" {
		t.Errorf("one sample decided whether it returned: %+v", s)
	}
}

// sampled is a run with one signal.
func sampled(phases []result.Phase, interval time.Duration, s scenario.Signal) *rundir.Recorded {
	return &rundir.Recorded{
		Measurements: result.Measurements{Phases: phases},
		Scenario:     &scenario.Scenario{Signals: []scenario.Signal{s}, Record: scenario.Record{Interval: scenario.Duration(interval)}},
	}
}

// Every sample's window lies in its own phase.
func TestSampleWindowsStayWithinPhase(t *testing.T) {
	phases := []result.Phase{
		{Name: "calm", Start: sec(0), End: sec(30)}, {Name: "storm", Start: sec(30), End: sec(62)},
		{Name: "short", Start: sec(62), End: sec(65)}, {Name: "other", Start: sec(65), End: sec(95)},
	}
	var asked []string
	query := func(_ context.Context, expr string, at time.Time) ([]float64, error) {
		asked = append(asked, at.Format("05")+" "+expr)
		if !at.After(sec(30)) {
			return []float64{1}, nil
		}
		return []float64{7}, nil
	}
	got, err := signals(t.Context(), sampled(phases, 5*time.Second, scenario.Signal{Name: "s", Expr: "x[$window]", Steady: []string{"calm"}, Under: []string{"storm", "short"}}), query)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"15 x[12501ms]", "20 x[12501ms]", "25 x[12501ms]", "30 x[12501ms]",
		"47 x[12501ms]", "52 x[12501ms]", "57 x[12501ms]", "02 x[12501ms]", "05 x[3001ms]",
	}
	if !slices.Equal(asked, want) {
		t.Errorf("queries = %q, want %q", asked, want)
	}
	if s := got[0]; s.Steady.Samples != 4 || s.Under.Samples != 5 || s.Moved == nil || s.After != nil {
		t.Errorf("signal = %+v", s)
	}
}

func TestSignalWithoutDataIsExplained(t *testing.T) {
	phases := []result.Phase{{Name: "calm", Start: sec(0), End: sec(60)}, {Name: "storm", Start: sec(60), End: sec(120)}}
	signal := scenario.Signal{Name: "s", Expr: "x", Steady: []string{"calm"}, Under: []string{"storm"}}
	for want, query := range map[string]query{
		"returns 2 series instead of one": func(context.Context, string, time.Time) ([]float64, error) { return []float64{1, 2}, nil },
		"returned no number":              func(context.Context, string, time.Time) ([]float64, error) { return []float64{math.NaN()}, nil },
		"no such function": func(context.Context, string, time.Time) ([]float64, error) {
			return nil, errors.New("no such function")
		},
	} {
		got, err := signals(t.Context(), sampled(phases, 5*time.Second, signal), query)
		if err != nil || got[0].Moved != nil || !strings.Contains(got[0].Detail, want) {
			t.Errorf("detail is %q (%v), want %q in it", got[0].Detail, err, want)
		}
	}
	got, err := signals(t.Context(), sampled(phases[:1], 5*time.Second, signal),
		func(context.Context, string, time.Time) ([]float64, error) { return []float64{1}, nil })
	if err != nil || !strings.Contains(got[0].Detail, "storm were reached") {
		t.Errorf("detail is %q (%v), want it to say that the phase was not reached", got[0].Detail, err)
	}
}

func TestSamplingEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	phases := []result.Phase{{Name: "calm", Start: sec(0), End: sec(60)}}
	_, err := signals(ctx, sampled(phases, time.Second, scenario.Signal{Steady: []string{"calm"}}),
		func(ctx context.Context, _ string, _ time.Time) ([]float64, error) { return nil, ctx.Err() })
	if !errors.Is(err, context.Canceled) {
		t.Errorf("error = %v", err)
	}
}
