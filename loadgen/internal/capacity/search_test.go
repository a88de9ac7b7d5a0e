package capacity_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stormglass/stormglass/loadgen/internal/capacity"
)

const seed = 1

// known returns a function that tries a load on a plane whose capacity varies around a value from trial to trial.
func known(rng *rand.Rand, value, spread float64) func(load float64) capacity.Outcome {
	return func(load float64) capacity.Outcome {
		if load > value*math.Exp(spread*rng.NormFloat64()) {
			return capacity.Bad
		}
		return capacity.Good
	}
}

func search(t *testing.T, o capacity.Options, try func(float64) capacity.Outcome) capacity.Estimate {
	t.Helper()
	s, err := capacity.New(o)
	if err != nil {
		t.Fatal(err)
	}
	for range 1000 {
		load, more := s.Next()
		if !more {
			return s.Estimate()
		}
		if load < o.Least*0.99 || load > o.To*1.01 {
			t.Fatalf("the search tries the load %v, which is not between %v and %v", load, o.Least, o.To)
		}
		s.Saw(load, try(load))
	}
	t.Fatal("the search did not end")
	return capacity.Estimate{}
}

// TestKnownCapacity checks that 90% of the intervals contain the true capacity, that the median error is at most 3%,
// and that the median number of trials is below 20, plus 3 confirming trials.
func TestKnownCapacity(t *testing.T) {
	t.Logf("seed %d", seed)
	const searches = 200
	for _, spread := range []float64{0.02, 0.04, 0.08} {
		t.Run(fmt.Sprint(spread), func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, uint64(1000*spread)))
			var errs []float64
			var trials []int
			covered := 0
			for range searches {
				truth := 100 * math.Exp(4*rng.Float64())
				e := search(t, capacity.Default(50, 20_000), known(rng, truth, spread))
				if e.Low <= truth && truth <= e.High {
					covered++
				}
				errs, trials = append(errs, math.Abs(e.Median/truth-1)), append(trials, e.Trials)
			}
			slices.Sort(errs)
			slices.Sort(trials)
			t.Logf("%d of %d intervals contain the capacity, median error %.2f%%, median trials %d, most %d", covered, searches, 100*errs[searches/2], trials[searches/2], trials[searches-1])
			if covered < searches*9/10 || errs[searches/2] > 0.03 || trials[searches/2] >= 20+3 {
				t.Error("too few intervals contain the capacity, or the median error or number of trials is too high")
			}
		})
	}
}

func TestAnswers(t *testing.T) {
	always := func(o capacity.Outcome) func(float64) capacity.Outcome {
		return func(float64) capacity.Outcome { return o }
	}
	for name, c := range map[string]struct {
		try  func(float64) capacity.Outcome
		want capacity.Answer
	}{
		"holds all":           {always(capacity.Good), capacity.AboveRange},
		"holds nothing":       {always(capacity.Bad), capacity.BelowRange},
		"saturated generator": {always(capacity.Invalid), capacity.GeneratorFirst},
		"a generator of 500": {func(load float64) capacity.Outcome {
			if load > 500 {
				return capacity.Invalid
			}
			return capacity.Good
		}, capacity.GeneratorFirst},
		"a knee at 300": {func(load float64) capacity.Outcome {
			if load > 300 {
				return capacity.Bad
			}
			return capacity.Good
		}, capacity.Found},
	} {
		t.Run(name, func(t *testing.T) {
			e := search(t, capacity.Default(50, 2000), c.try)
			if e.Answer != c.want {
				t.Errorf("estimate %+v, want the answer %q", e, c.want)
			}
			if e.Answer == capacity.Found && (e.Low > 300 || e.High < 300 || e.Held > 300) {
				t.Errorf("estimate %+v, want an interval around 300", e)
			}
		})
	}
}

// A search finds a capacity between the highest good load and the lowest load that saturates the generator.
func TestKneeBelowTheGeneratorsLimit(t *testing.T) {
	for truth, want := range map[float64]capacity.Answer{2900: capacity.Found, 5000: capacity.GeneratorFirst} {
		e := search(t, capacity.Default(50, 20_000), func(load float64) capacity.Outcome {
			switch {
			case load > 3150:
				return capacity.Invalid
			case load > truth:
				return capacity.Bad
			}
			return capacity.Good
		})
		if e.Answer != want || want == capacity.Found && (e.Low > truth || e.High < truth) {
			t.Errorf("capacity %v: answer %q, interval %v to %v; want %q", truth, e.Answer, e.Low, e.High, want)
		}
	}
}

// Two trials without data end the search with the answer Unjudged, not with GeneratorFirst.
func TestTrialsWithoutData(t *testing.T) {
	e := search(t, capacity.Default(50, 20_000), func(float64) capacity.Outcome { return capacity.NoData })
	if e.Answer != capacity.Unjudged || e.Trials != 2 {
		t.Errorf("got %s after %d trials", e.Answer, e.Trials)
	}
}

// An invalid trial followed by a trial without data does not end the search.
func TestUselessTrialsOfTwoKinds(t *testing.T) {
	n := 0
	e := search(t, capacity.Default(50, 400), func(load float64) capacity.Outcome {
		n++
		switch {
		case n == 1:
			return capacity.Invalid
		case n == 2:
			return capacity.NoData
		case load > 150:
			return capacity.Bad
		}
		return capacity.Good
	})
	if e.Answer != capacity.Found {
		t.Errorf("answer %q, want found", e.Answer)
	}
}

// A search that has used all its trials, and whose interval is still wide, is unfinished.
func TestTooFewTrials(t *testing.T) {
	o := capacity.Default(100, 20_000)
	o.Trials = 5
	e := search(t, o, func(load float64) capacity.Outcome {
		if load > 850 {
			return capacity.Bad
		}
		return capacity.Good
	})
	if e.Answer != capacity.Unfinished {
		t.Errorf("answer %q, interval %v to %v; want unfinished", e.Answer, e.Low, e.High)
	}
}

// A search ends when no whole number lies inside its interval.
func TestWholeLoads(t *testing.T) {
	o := capacity.Default(1, 10)
	o.Growth, o.Whole = 1.2, true
	e := search(t, o, func(load float64) capacity.Outcome {
		if math.Round(load) > 3 {
			return capacity.Bad
		}
		return capacity.Good
	})
	if e.Answer != capacity.Found || math.Floor(e.Median) != 3 || e.Trials > 20 {
		t.Errorf("answer %q, median %v after %d trials; want found, 3 after at most 20", e.Answer, e.Median, e.Trials)
	}
}

// A single bad trial does not count as a capacity if loads in the whole range were good.
func TestStrayBadTrial(t *testing.T) {
	n := 0
	e := search(t, capacity.Default(50, 400), func(float64) capacity.Outcome {
		if n++; n == 2 {
			return capacity.Bad
		}
		return capacity.Good
	})
	if e.Answer != capacity.AboveRange {
		t.Errorf("answer %q, interval %v to %v; want %q", e.Answer, e.Low, e.High, capacity.AboveRange)
	}
}

// A search finds a capacity near the end of the range: if the end of the range is bad, it confirms the lower end of the
// interval.
func TestKneeNearTheEnd(t *testing.T) {
	for _, truth := range []float64{1900, 1950, 1980} {
		e := search(t, capacity.Default(50, 2000), func(load float64) capacity.Outcome {
			if load > truth {
				return capacity.Bad
			}
			return capacity.Good
		})
		if e.Answer != capacity.Found || e.Low > truth || e.High < truth {
			t.Errorf("capacity %v: answer %q, interval %v to %v after %d trials", truth, e.Answer, e.Low, e.High, e.Trials)
		}
	}
}

// A search without bad trials ends when it has used all its trials.
func TestTrialsBoundGrowth(t *testing.T) {
	o := capacity.Default(50, 20_000)
	o.Growth, o.Trials = 1.2, 5
	if e := search(t, o, func(float64) capacity.Outcome { return capacity.Good }); e.Answer != capacity.Unfinished || e.Trials != 5 {
		t.Errorf("got %s after %d trials", e.Answer, e.Trials)
	}
}

// Whole loads grow by at least one. If the generator is the limit at a load, the search tries no load between the
// previous whole number and this load.
func TestWholeLoadsGrow(t *testing.T) {
	o := capacity.Default(1, 40)
	o.Growth, o.Whole = 1.2, true
	var loads []float64
	e := search(t, o, func(load float64) capacity.Outcome {
		if loads = append(loads, load); load >= 6 {
			return capacity.Invalid
		}
		return capacity.Good
	})
	if want := []float64{1, 2, 3, 4, 5, 6, 6}; e.Answer != capacity.GeneratorFirst || !slices.Equal(loads, want) {
		t.Errorf("answer %q after the loads %v, want %q after %v", e.Answer, loads, capacity.GeneratorFirst, want)
	}
}

// If the generator is the limit below a bad load, the search tries higher loads once more: other processes may have
// used the machine.
func TestGeneratorsLimitBelowABadLoad(t *testing.T) {
	for name, c := range map[string]struct {
		limits func(load float64, invalid int) bool
		want   capacity.Answer
	}{
		"for two trials": {func(_ float64, invalid int) bool { return invalid < 2 }, capacity.Found},
		"for good":       {func(load float64, _ int) bool { return load > 500 }, capacity.GeneratorFirst},
	} {
		bad, invalid := false, 0
		e := search(t, capacity.Default(50, 20_000), func(load float64) capacity.Outcome {
			switch {
			case bad && c.limits(load, invalid):
				invalid++
				return capacity.Invalid
			case load > 700:
				bad = true
				return capacity.Bad
			}
			return capacity.Good
		})
		if e.Answer != c.want || e.Trials > 20 || e.Answer == capacity.Found && (e.Low > 700 || e.High < 700) {
			t.Errorf("limit %s: answer %q, interval %v to %v after %d trials; want %q", name, e.Answer, e.Low, e.High, e.Trials, c.want)
		}
	}
}

// A search that confirms the end of the range ends if the generator is the limit at that load.
func TestGeneratorsLimitAtTheEnd(t *testing.T) {
	n := 0
	e := search(t, capacity.Default(50, 400), func(load float64) capacity.Outcome {
		switch n++; {
		case n == 2:
			return capacity.Bad
		case load == 400:
			return capacity.Invalid
		}
		return capacity.Good
	})
	if e.Answer != capacity.GeneratorFirst || e.Trials > 20 {
		t.Errorf("got %s after %d trials", e.Answer, e.Trials)
	}
}

// A search ends if invalid trials and trials without data alternate, even while it confirms the lower end of the
// interval.
func TestUselessTrialsInTurns(t *testing.T) {
	for _, useful := range []int{0, 12} {
		n := 0
		e := search(t, capacity.Default(50, 2000), func(load float64) capacity.Outcome {
			switch n++; {
			case n > useful:
				return []capacity.Outcome{capacity.Invalid, capacity.NoData}[n%2]
			case load > 300:
				return capacity.Bad
			}
			return capacity.Good
		})
		if e.Answer != capacity.Unfinished || e.Trials > 50 {
			t.Errorf("%d useful trials: answer %q after %d trials, want unfinished after at most 50", useful, e.Answer, e.Trials)
		}
	}
}

// After a bad first trial, the search does not raise the load. One bad trial does not mean that the capacity lies below
// the range.
func TestFirstTrialIsBad(t *testing.T) {
	for _, to := range []float64{60, 20_000} {
		var loads []float64
		e := search(t, capacity.Default(50, to), func(load float64) capacity.Outcome {
			if loads = append(loads, load); len(loads) == 1 || load > 700 {
				return capacity.Bad
			}
			return capacity.Good
		})
		if loads[1] > loads[0] || e.Answer == capacity.BelowRange {
			t.Errorf("range up to %v: answer %q after the loads %v", to, e.Answer, loads)
		}
	}
}
