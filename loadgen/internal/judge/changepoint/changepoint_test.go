package changepoint_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stormglass/stormglass/loadgen/internal/judge/changepoint"
)

const seed = 1

// history has a level for each part, and noise of 4%.
func history(rng *rand.Rand, levels map[int]float64, n int) (values []float64) {
	level := 1.0
	for i := range n {
		if v, ok := levels[i]; ok {
			level = v
		}
		values = append(values, level*(1+0.04*rng.NormFloat64()))
	}
	return values
}

func TestChangesAreFound(t *testing.T) {
	t.Logf("seed %d", seed)
	for name, c := range map[string]struct {
		levels map[int]float64
		want   []int
	}{
		"none":             {nil, nil},
		"one":              {map[int]float64{60: 1.2}, []int{60}},
		"there and back":   {map[int]float64{40: 1.3, 70: 1}, []int{40, 70}},
		"in steps":         {map[int]float64{30: 1.15, 60: 1.3, 90: 1.45}, []int{30, 60, 90}},
		"too small to say": {map[int]float64{60: 1.02}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			got := changepoint.Find(changepoint.Default(), history(rand.New(rand.NewPCG(seed, 1)), c.levels, 120))
			if len(got) != len(c.want) {
				t.Fatalf("changes at %+v, want %v", got, c.want)
			}
			for i, p := range got {
				if d := p.Index - c.want[i]; d < -2 || d > 2 {
					t.Errorf("a change at %d, want %d", p.Index, c.want[i])
				}
			}
		})
	}
}

// A change that ends after a few runs is found in a short history, too.
func TestTemporaryChange(t *testing.T) {
	t.Logf("seed %d", seed)
	found := 0
	for i := range uint64(20) {
		values := history(rand.New(rand.NewPCG(seed, 10+i)), map[int]float64{10: 0.85, 17: 1}, 30)
		if got := changepoint.Find(changepoint.Default(), values); len(got) == 2 && got[0].Index == 10 && got[1].Index == 17 {
			found++
		}
	}
	if t.Logf("%d of 20", found); found < 15 {
		t.Errorf("the temporary change is found in %d of 20 histories", found)
	}
}

// A spike is a single value far from its neighbours. The values after a lasting change are no spikes.
func TestSpikes(t *testing.T) {
	values := []float64{10, 11, 10, 30, 10, 11, 10, 20, 21, 20, 20, 21, 5, 20}
	if got := changepoint.Spikes(values); !slices.Equal(got, []int{3, 12}) {
		t.Errorf("spikes at %v, want 3 and 12", got)
	}
	if got := changepoint.Spikes([]float64{1, 100, 1}); got != nil {
		t.Errorf("spikes at %v in three values", got)
	}
}

// TestFalseAlarms: in almost all of 200 histories without a change, none is found.
func TestFalseAlarms(t *testing.T) {
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 2))
	alarms := 0
	for range 200 {
		alarms += min(1, len(changepoint.Find(changepoint.Default(), history(rng, nil, 100))))
	}
	t.Logf("%d of 200", alarms)
	if alarms > 4 {
		t.Errorf("the search finds a change in %d of 200 histories without one", alarms)
	}
}

func TestShortAndConstantHistories(t *testing.T) {
	for n := range 8 {
		if got := changepoint.Find(changepoint.Default(), make([]float64, n)); len(got) > 0 {
			t.Errorf("%d zeros: %+v", n, got)
		}
	}
	step := []float64{5, 5, 5, 5, 7, 7, 7, 7}
	if got := changepoint.Find(changepoint.Default(), step); len(got) != 1 || got[0].Index != 4 {
		t.Errorf("a step of constants: %+v", got)
	}
}
