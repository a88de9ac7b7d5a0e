// Package paired decides from pairs of measurements of A and B whether B is worse than A. It applies a one-sided paired
// t-test to d = ln(B/A) after a few fixed numbers of pairs. Each such test is called a look, and has its own alpha. The
// total error rate is at most the sum of these alphas, so a comparison may stop after any look. The tests of this
// package simulate the error rates of the default plan.
package paired

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"

	"github.com/stormglass/stormglass/loadgen/result"
)

// Default returns the default plan. docs/reference/comparing.md states its error rates.
func Default() result.Plan {
	return result.Plan{
		Looks:  []result.Look{{Pairs: 6, Alpha: 0.003}, {Pairs: 9, Alpha: 0.003}, {Pairs: 12, Alpha: 0.004}},
		Change: 0.05, Margin: 0.10, Confidence: 0.95, Figures: 5, Spread: 0.06,
		Throw: result.Throw{Steal: 0.02, Other: 0.05, IO: 0.20},
	}
}

// Check validates a plan.
func Check(p result.Plan) error {
	if len(p.Looks) == 0 {
		return fmt.Errorf("no looks")
	}
	for i, l := range p.Looks {
		switch {
		case l.Pairs < 3:
			return fmt.Errorf("--looks %d: a look needs at least 3 pairs, because fewer do not show how much pairs vary", l.Pairs)
		case i > 0 && l.Pairs <= p.Looks[i-1].Pairs:
			return fmt.Errorf("--looks: %d comes after %d, but the numbers of pairs must increase", l.Pairs, p.Looks[i-1].Pairs)
		case !(l.Alpha > 0 && l.Alpha < 0.5):
			return fmt.Errorf("--alpha %s: must be over 0%% and below 50%%", share(l.Alpha))
		}
	}
	switch {
	case !(p.Change > 0):
		return fmt.Errorf("--change %s: must be over 0%%", share(p.Change))
	case !(p.Margin > p.Change):
		return fmt.Errorf("--margin %s: must be over --change, which is %s", share(p.Margin), share(p.Change))
	case !(p.Confidence > 0.5 && p.Confidence < 1):
		return fmt.Errorf("--confidence %s: must be over 50%% and below 100%%", share(p.Confidence))
	case p.Figures < 1:
		return fmt.Errorf("--max-metrics %d: must be at least 1", p.Figures)
	case !(p.Spread > 0):
		return fmt.Errorf("--spread %s: must be over 0%%", share(p.Spread))
	}
	return nil
}

// share formats a fraction as a percentage, in the format of the flags.
func share(v float64) string { return strconv.FormatFloat(100*v, 'g', 6, 64) + "%" }

// IsLook reports whether the plan has a look (an interim test) after this number of pairs.
func IsLook(p result.Plan, pairs int) bool {
	return slices.ContainsFunc(p.Looks, func(l result.Look) bool { return l.Pairs == pairs })
}

// Judged is the result for one figure (a compared metric). Changes are fractions: 0.05 is 5% worse.
type Judged struct {
	Answer result.Answer
	Pairs  int // number of pairs that were used, up to the last look (interim test)
	// Change is the geometric mean of B/A, minus 1. Low and High are one-sided bounds of the change, each at the
	// confidence of the plan.
	Change, Low, High float64
	// Spread is the standard deviation of ln(B/A), or of the differences as fractions of A.
	Spread float64
	// T is the test statistic. A change is significant if the absolute value of T exceeds Critical.
	T, Critical float64
}

// MinRuns is the minimum number of runs of A and of B to judge runs that are not paired.
const MinRuns = 3

// Figure holds the changes of one figure (a compared metric), in the order of the pairs. A positive change is worse.
type Figure struct {
	// D holds ln(B/A) of each pair. If Differences is set, D holds B minus A, which is also defined for a figure that
	// is 0 in some pairs.
	D           []float64
	Differences bool
	// Level is the mean of A, by which a difference is divided to give a fraction. It is 1 if the differences are
	// already fractions.
	Level float64
	// Gone is the change if the figure is 0 in B: -1, or +1 if higher values of the figure are better. No larger change
	// in this direction is possible. 0 means that there is no such limit, because the figure can be negative.
	Gone float64
}

// Judge tests each figure (compared metric) at the last look (interim test) for which it has enough pairs. It ignores
// later pairs.
func Judge(p result.Plan, figures []Figure) []Judged {
	tests := make([]test, len(figures))
	for i, f := range figures {
		tests[i] = newTest(p, f.D)
		tests[i].differences, tests[i].level, tests[i].gone = f.Differences, f.Level, f.Gone
	}
	return holm(p, tests)
}

// Sets holds the values of one figure in the runs of A and of B. The values are logarithms or, if Differences is set,
// plain values, for example for a figure that is 0 in some runs. Level and Gone have the same meaning as in Figure.
type Sets struct {
	A, B        []float64
	Differences bool
	Level, Gone float64
}

// JudgeSets tests figures (compared metrics) of runs that are not paired. If the machine changed between the two sets
// of runs, the test takes this for a change of B.
func JudgeSets(p result.Plan, figures []Sets) []Judged {
	tests := make([]test, len(figures))
	for i, s := range figures {
		tests[i] = newWelch(p, s.A, s.B)
		tests[i].differences, tests[i].level, tests[i].gone = s.Differences, s.Level, s.Gone
	}
	return holm(p, tests)
}

// holm judges several figures that share one alpha, with the Holm method: the smaller the p-value of a figure, the
// smaller its part of alpha. If there are at most as many figures as the plan allows, each figure gets the whole alpha.
func holm(p result.Plan, tests []test) []Judged {
	all, order := make([]Judged, len(tests)), make([]int, len(tests))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(tests[a].smaller(), tests[b].smaller()) })
	share, stopped := 1.0, false
	for rank, i := range order {
		if !stopped {
			share = max(1, float64(len(tests)-rank)/float64(p.Figures))
		}
		all[i] = tests[i].judge(p, share)
		stopped = stopped || math.Abs(all[i].T) <= all[i].Critical
	}
	return all
}

// test is the t-test of one figure at one look. It holds the mean of ln(B/A) or of the differences, its standard error,
// and the t-distribution of the mean divided by its standard error.
type test struct {
	look              result.Look // the look of the test; the zero value means that there are too few pairs for one
	n                 int
	mean, spread, err float64
	dist              distuv.StudentsT
	differences       bool // whether mean is the mean of B-A instead of ln(B/A); level is as in Figure
	level, gone       float64
}

func newTest(p result.Plan, d []float64) (t test) {
	t.n = len(d)
	for _, l := range p.Looks {
		if l.Pairs <= len(d) {
			t.look, t.n = l, l.Pairs
		}
	}
	if t.n > 0 {
		t.mean = stat.Mean(d[:t.n], nil)
	}
	if t.n > 1 {
		t.spread = stat.StdDev(d[:t.n], nil)
		t.err = t.spread / math.Sqrt(float64(t.n))
		t.dist = distuv.StudentsT{Mu: 0, Sigma: 1, Nu: float64(t.n - 1)}
	}
	return t
}

// newWelch returns Welch's t-test of runs that are not paired. Its alpha is the sum of the alphas of all looks in the
// plan.
func newWelch(p result.Plan, a, b []float64) (t test) {
	t.n = min(len(a), len(b))
	if t.n == 0 {
		return t
	}
	t.mean = stat.Mean(b, nil) - stat.Mean(a, nil)
	if t.n == 1 {
		return t
	}
	va, vb := stat.Variance(a, nil)/float64(len(a)), stat.Variance(b, nil)/float64(len(b))
	t.spread, t.err = math.Sqrt(stat.Variance(a, nil)+stat.Variance(b, nil)), math.Sqrt(va+vb)
	nu := float64(len(a) + len(b) - 2)
	if t.err > 0 {
		nu = (va + vb) * (va + vb) / (va*va/float64(len(a)-1) + vb*vb/float64(len(b)-1))
	}
	t.dist = distuv.StudentsT{Mu: 0, Sigma: 1, Nu: nu}
	if t.n >= MinRuns && len(p.Looks) > 0 {
		t.look.Pairs = t.n
		for _, l := range p.Looks {
			t.look.Alpha += l.Alpha
		}
	}
	return t
}

// t returns the t statistic of the test: the mean divided by its standard error.
func (t test) t() float64 {
	switch {
	case t.n < 2:
		return 0
	case t.err > 0:
		return t.mean / t.err
	case t.mean != 0:
		return math.Copysign(math.Inf(1), t.mean)
	}
	return 0
}

// smaller returns the smaller of the two one-sided p-values.
func (t test) smaller() float64 {
	if t.look.Pairs == 0 {
		return 1
	}
	return t.dist.Survival(math.Abs(t.t()))
}

// judge returns the result of the test with alpha divided by share.
func (t test) judge(p result.Plan, share float64) Judged {
	j := Judged{Answer: result.CouldNotTell, Pairs: t.n, Change: t.share(t.mean), Spread: t.spread, T: t.t(), Low: math.Inf(-1), High: math.Inf(1)}
	if t.n > 1 {
		bound := t.dist.Quantile(p.Confidence) * t.err
		j.Low, j.High = t.share(t.mean-bound), t.share(t.mean+bound)
		switch {
		case t.gone < 0:
			j.Low = max(j.Low, t.gone)
		case t.gone > 0:
			j.High = min(j.High, t.gone)
		}
	}
	if t.differences && t.level > 0 {
		j.Spread /= t.level
	}
	if t.look.Pairs == 0 {
		return j
	}
	j.Critical = t.dist.Quantile(1 - t.look.Alpha/share)
	least := math.Log1p(p.Change)
	if t.differences {
		least = p.Change * t.level
	}
	switch {
	case j.T > j.Critical && t.mean >= least:
		j.Answer = result.Regressed
	case -j.T > j.Critical && t.mean <= -least:
		j.Answer = result.Improved
	case j.High < p.Margin:
		j.Answer = result.NotRegressed
	}
	return j
}

// share converts a mean of ln(B/A) or of differences to a fraction of A. For differences, the fraction is infinite if
// the mean of A is 0.
func (t test) share(mean float64) float64 {
	switch {
	case !t.differences:
		return math.Expm1(mean)
	case mean == 0:
		return 0
	}
	return mean / t.level
}
