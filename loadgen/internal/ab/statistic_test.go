package ab

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stormglass/stormglass/loadgen/internal/judge/paired"
	"github.com/stormglass/stormglass/loadgen/result"
)

// The change of a figure equals the change from the value shown for A to the value shown for B. Both values use the
// statistic that the figure names.
func TestChangeLeadsFromOneSideToTheOther(t *testing.T) {
	const seed = 11
	t.Logf("seed %d", seed)
	draw := rand.New(rand.NewPCG(seed, 1))
	member := func(v float64) result.Member { return result.Member{Values: map[string]float64{"f": v}} }
	many := func(n int, a, b func() float64) (x, y []float64) {
		for range n {
			x, y = append(x, a()), append(y, b())
		}
		return x, y
	}
	wide := func() float64 { return 10 * math.Exp(draw.NormFloat64()) }
	zeros := func() float64 { return float64(draw.IntN(3)) }
	none := func() float64 { return 0 }
	for name, c := range map[string]struct {
		a, b  func() float64
		named result.Statistic
	}{
		"ratios":              {wide, wide, result.GeometricMean},
		"0 in B":              {wide, zeros, result.WeightedMean},
		"0 in A and B":        {zeros, zeros, result.Mean},
		"below 0":             {draw.NormFloat64, draw.NormFloat64, result.Mean},
		"the same everywhere": {none, none, result.Mean},
	} {
		for _, better := range []string{"lower", "higher"} {
			for _, sets := range []bool{false, true} {
				at := fmt.Sprintf("%s, better %s, sets %v", name, better, sets)
				a, b := many(7, c.a, c.b)
				all := result.AB{Plan: paired.Default(), Figures: []result.ABFigure{{Name: "f", Better: better, Gated: true}}}
				all.Plan.Looks = []result.Look{{Pairs: 3, Alpha: 0.01}, {Pairs: 7, Alpha: 0.01}}
				if sets {
					all.Sets = &result.Sets{}
					for i := range a {
						all.Sets.A, all.Sets.B = append(all.Sets.A, member(a[i])), append(all.Sets.B, member(b[i]))
					}
					judgeSets(&all)
				} else {
					for i := range a {
						all.Pairs = append(all.Pairs, result.Pair{Number: i + 1, A: member(a[i]), B: member(b[i])})
					}
					judgePairs(&all)
				}
				f := all.Figures[0]
				if f.A == nil || f.B == nil || f.Change == nil || f.MedianA == nil || f.MedianB == nil {
					t.Fatalf("%s: %+v", at, f)
				}
				from, to := *f.A, *f.B
				want := (to - from) / math.Abs(from)
				switch {
				case to == from:
					want = 0
				case better == "higher" && f.Statistic == result.GeometricMean:
					want = from/to - 1
				case better == "higher":
					want = -want
				}
				if math.Abs(*f.Change-want) > 1e-9*max(1, math.Abs(want)) {
					t.Errorf("%s: from %v to %v (%s) is %v, and the change is %v", at, from, to, f.Statistic, want, *f.Change)
				}
				if statistic := c.named; f.Statistic != statistic && !(sets && statistic == result.WeightedMean) {
					t.Errorf("%s: Statistic = %q, want %q", at, f.Statistic, statistic)
				}
			}
		}
	}
}

// The medians may rise while the geometric mean falls. The values shown for A and B then fall too.
func TestSidesGoTheWayOfTheChange(t *testing.T) {
	a, b := []float64{8.2, 8.3, 8.4, 8.5, 30}, []float64{8.7, 8.8, 8.9, 9, 9.1}
	c := result.AB{Plan: paired.Default(), Figures: []result.ABFigure{{Name: "f", Better: "lower", Gated: true}}}
	for i := range a {
		c.Pairs = append(c.Pairs, result.Pair{Number: i + 1, A: result.Member{Values: map[string]float64{"f": a[i]}}, B: result.Member{Values: map[string]float64{"f": b[i]}}})
	}
	judgePairs(&c)
	f := c.Figures[0]
	if *f.MedianB <= *f.MedianA || *f.Change >= 0 {
		t.Fatalf("the test's example is wrong: medians %v and %v, change %v", *f.MedianA, *f.MedianB, *f.Change)
	}
	if *f.B >= *f.A {
		t.Errorf("from %v to %v with a change of %v", *f.A, *f.B, *f.Change)
	}
}
