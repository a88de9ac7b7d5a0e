package ab

import (
	"testing"

	"github.com/stormglass/stormglass/loadgen/internal/judge/paired"
	"github.com/stormglass/stormglass/loadgen/result"
)

// A figure that falls to 0 in B has changed by -100%, and never by more. If B is always 0, the change is exact even if
// A varies.
func TestFigureThatIsGone(t *testing.T) {
	plan := paired.Default()
	plan.Looks = []result.Look{{Pairs: 3, Alpha: 0.01}}
	for name, c := range map[string]struct {
		a, b              []float64
		better            string
		answer            result.Answer
		change, low, high float64
	}{
		"gone":           {[]float64{5.4, 5.5, 5.7}, []float64{0, 0, 0}, "lower", result.Improved, -1, -1, -1},
		"gone, a loss":   {[]float64{5.4, 5.5, 5.7}, []float64{0, 0, 0}, "higher", result.Regressed, 1, 1, 1},
		"gone in most":   {[]float64{100, 100, 100}, []float64{0, 0, 3}, "lower", result.Improved, -0.99, -1, -0.961},
		"A is 0 in some": {[]float64{9, 0, 9}, []float64{0, 0, 0}, "lower", result.CouldNotTell, -1, -1, 0.461},
	} {
		f := &result.ABFigure{Name: "f", Better: c.better, Gated: true}
		var pairs []result.Pair
		for i := range c.a {
			pairs = append(pairs, result.Pair{
				Number: i + 1, A: result.Member{Values: map[string]float64{"f": c.a[i]}}, B: result.Member{Values: map[string]float64{"f": c.b[i]}},
			})
		}
		judgeFigures(plan, []collected{collect(f, pairs)}, len(pairs))
		near := func(got *float64, want float64) bool {
			return got != nil && *got > want-0.01 && *got < want+0.01
		}
		if f.Answer != c.answer || !near(f.Change, c.change) || !near(f.Low, c.low) || !near(f.High, c.high) {
			t.Errorf("%s: %s, %s from %s to %s", name, f.Answer, bound(f.Change), bound(f.Low), bound(f.High))
		}
	}
}
