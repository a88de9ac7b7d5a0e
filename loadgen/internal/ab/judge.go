package ab

import (
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/stat"

	"github.com/stormglass/stormglass/internal/digits"
	"github.com/stormglass/stormglass/internal/exitcode"
	"github.com/stormglass/stormglass/loadgen/internal/judge/paired"
	"github.com/stormglass/stormglass/loadgen/result"
)

// judgePairs judges the pairs in c and sets the results in c.
func judgePairs(c *result.AB) {
	counted := Counted(c.Pairs)
	c.Thrown = 0
	for _, p := range c.Pairs {
		if p.Thrown != "" && p.Number != warmUp {
			c.Thrown++
		}
	}
	looks := reached(c.Plan.Looks, len(counted))
	if len(looks) > 0 {
		counted = counted[:looks[0].Pairs] // later pairs count at the next look
	}
	if c.A.Baseline != "" {
		plan := c.Plan
		c.Plan.Looks, c.Sets.B = looks, nil
		for _, p := range counted {
			c.Sets.B = append(c.Sets.B, p.B)
		}
		judgeSets(c)
		c.Plan = plan
		return
	}
	for _, gated := range []bool{true, false} { // judge them separately: advisory metrics must not use up the alpha of gated metrics
		var of []collected
		for i := range c.Figures {
			if f := &c.Figures[i]; f.Gated == gated {
				of = append(of, collect(f, counted))
			}
		}
		judgeFigures(c.Plan, of, len(counted))
		for _, one := range of {
			checkLowerBound(one.figure, one.lower)
		}
	}
	conclude(c, len(counted))
	var a, b []result.Member
	for _, p := range counted {
		a, b = append(a, p.A), append(b, p.B)
	}
	checkVerdicts(c, a, b)
}

// checkLowerBound changes the answer for a metric to CouldNotTell if only a lower bound is known for a value of B. It
// keeps the answer Regressed. bound names the pair or run with this value; "" means that all values of B are exact.
func checkLowerBound(f *result.ABFigure, bound string) {
	if bound != "" && f.Answer != result.Regressed {
		f.Answer, f.Detail = result.CouldNotTell, bound
	}
}

// reached returns the latest of the looks (interim analyses) that is due after this number of pairs, as a slice of one
// element. It returns nil before the first look.
func reached(looks []result.Look, pairs int) []result.Look {
	for i, l := range slices.Backward(looks) {
		if l.Pairs <= pairs {
			return looks[i : i+1]
		}
	}
	return nil
}

// checkVerdicts adds the numbers of runs that did not pass to the reasons. A failed run may have done less work. The
// answers NotRegressed and Improved therefore become CouldNotTell if at least half of B's runs did not pass, and B has
// the larger fraction of such runs.
func checkVerdicts(c *result.AB, a, b []result.Member) {
	count := func(of []result.Member, is func(result.Member) bool) (n int) {
		for _, m := range of {
			if is(m) {
				n++
			}
		}
		return n
	}
	passedNot := func(m result.Member) bool { return m.Verdict != result.Pass && !m.Ungated }
	failed := func(m result.Member) bool { return m.Verdict == result.Fail }
	ofA, ofB := count(a, passedNot), count(b, passedNot)
	more := ofB*len(a) > ofA*len(b)
	if !more && count(a, failed)+count(b, failed) == 0 {
		return
	}
	reason := fmt.Sprintf("%d of %d runs of B did not pass, and %d of %d runs of A did not pass", ofB, len(b), ofA, len(a))
	if more && c.ExitCode == exitcode.Pass && 2*ofB >= len(b) {
		c.Answer, c.ExitCode = result.CouldNotTell, exitcode.NoData
		reason += "; a failed run may do less work, so its metrics cannot be compared"
	}
	c.Reasons = append(c.Reasons, reason)
}

// Counted returns the pairs that count: all except the warm-up pair and the pairs that were discarded.
func Counted(all []result.Pair) []result.Pair {
	return slices.DeleteFunc(slices.Clone(all), func(p result.Pair) bool { return p.Number == warmUp || p.Thrown != "" })
}

// collected holds the values of one metric in all pairs.
type collected struct {
	figure *result.ABFigure
	paired paired.Figure
	// lower names a pair in which the value of B is only a lower bound. It is "" if all values of B are exact. A
	// regression can be proven even with a lower bound.
	lower string
}

// collect collects the values of a metric from the pairs. It does not judge a metric that is missing in a pair, because
// the change under test may be the reason why it is missing.
func collect(f *result.ABFigure, pairs []result.Pair) collected {
	f.Changes, f.Detail = []float64{}, ""
	lower := ""
	var a, b, differences, shares []float64
	for _, p := range pairs {
		va, okA := p.A.Values[f.Name]
		vb, okB := p.B.Values[f.Name]
		if okA {
			a = append(a, va)
		}
		if okB {
			b = append(b, vb)
		}
		if slices.Contains(p.B.AtLeast, f.Name) {
			lower = fmt.Sprintf("in pair %d only a lower bound of B's value is known", p.Number)
		}
		switch {
		case okA && slices.Contains(p.A.AtLeast, f.Name), okB && f.Better == "higher" && slices.Contains(p.B.AtLeast, f.Name):
			f.Detail = fmt.Sprintf("in pair %d only a lower bound of a value is known", p.Number)
		case !okA || !okB:
			f.Detail = fmt.Sprintf("no data in pair %d, in the run of %s", p.Number, missingSide(okA, okB))
		default:
			d, difference := 0.0, vb-va
			if va > 0 && vb > 0 {
				d = math.Log(vb / va)
			}
			if f.Better == "higher" {
				d, difference = -d, -difference
			}
			f.Changes, differences, shares = append(f.Changes, d), append(differences, difference), append(shares, difference/va)
		}
	}
	f.MedianA, f.MedianB = median(a), median(b)
	ratios := len(a) == 0 || len(b) == 0 || slices.Min(a) > 0 && slices.Min(b) > 0
	switch {
	case f.Detail != "":
		f.Changes = []float64{}
		showSides(f, sidesOf(a, b), a, b)
		return collected{f, paired.Figure{}, lower}
	case ratios || slices.Equal(a, b):
		showSides(f, sidesOf(a, b), a, b)
		return collected{f, paired.Figure{D: f.Changes}, lower}
	}
	f.Changes = []float64{} // a value of 0 or less has no ratio
	figure, how := paired.Figure{D: differences, Differences: true, Level: math.Abs(stat.Mean(a, nil)), Gone: gone(f, a, b)}, result.Mean
	if slices.Min(a) > 0 {
		figure.D, figure.Level, how = shares, 1, result.WeightedMean
	}
	showSides(f, how, a, b)
	return collected{f, figure, lower}
}

// gone returns the relative change of a metric that is positive in A and 0 in B: -1, or +1 if higher values are better,
// because positive changes are regressions. It returns 0 if a value is negative, because then 0 is not the minimum.
func gone(f *result.ABFigure, a, b []float64) float64 {
	switch {
	case slices.Min(a) < 0 || slices.Min(b) < 0:
		return 0
	case f.Better == "higher":
		return 1
	}
	return -1
}

// byDifference returns the text which says that a metric was judged by the difference between A and B instead of their
// ratio.
func byDifference(f *result.ABFigure) string {
	return fmt.Sprintf("judged by the difference instead of the ratio, because some values are 0: %s in A, %s in B (%s)", digits.Format(*f.A, 4), digits.Format(*f.B, 4), f.Statistic)
}

func missingSide(a, b bool) string {
	switch {
	case a:
		return "B"
	case b:
		return "A"
	}
	return "A and B"
}

func median(values []float64) *float64 {
	if len(values) == 0 {
		return nil
	}
	sorted := slices.Sorted(slices.Values(values))
	m := sorted[len(sorted)/2]
	if len(sorted)%2 == 0 {
		m = stat.Mean(sorted[len(sorted)/2-1:len(sorted)/2+1], nil)
	}
	return &m
}

func judgeFigures(plan result.Plan, all []collected, pairs int) {
	var figures []paired.Figure
	for _, one := range all {
		figures = append(figures, one.paired)
	}
	for i, j := range paired.Judge(plan, figures) {
		f := all[i].figure
		if fill(f, j); all[i].paired.Differences {
			f.Detail = byDifference(f)
			continue
		}
		if f.Answer != result.CouldNotTell || f.Detail != "" {
			continue
		}
		switch {
		case pairs < plan.Looks[0].Pairs:
			f.Detail = fmt.Sprintf("%d of %d pairs", pairs, plan.Looks[0].Pairs)
		default:
			f.Detail = between(j)
		}
	}
}

// fill sets the answer and the statistics of the metric f from j, the result of its statistical test.
func fill(f *result.ABFigure, j paired.Judged) {
	f.Answer, f.Pairs = j.Answer, j.Pairs
	f.Change, f.Low, f.High, f.Spread, f.T, f.Critical = nil, nil, nil, nil, nil, nil
	if j.Pairs > 0 {
		f.Change = known(j.Change)
	}
	if j.Pairs > 1 {
		f.Low, f.High, f.Spread, f.T = known(j.Low), known(j.High), known(j.Spread), known(j.T)
	}
	if j.Critical > 0 {
		f.Critical = known(j.Critical)
	}
}

func between(j paired.Judged) string {
	return fmt.Sprintf("the change lies between %s and %s", digits.Change(j.Low), digits.Change(j.High))
}

// known returns a pointer to v, or nil if JSON cannot represent v.
func known(v float64) *float64 {
	if math.IsInf(v, 0) || math.IsNaN(v) {
		return nil
	}
	return &v
}

// conclude derives the answer from the gated (deciding) metrics.
func conclude(c *result.AB, pairs int) {
	c.Reasons = []string{}
	c.Answer = result.NotRegressed
	say := func(format string, args ...any) { c.Reasons = append(c.Reasons, fmt.Sprintf(format, args...)) }
	var regressed, unknown, improved, gated int
	for _, f := range c.Figures {
		if !f.Gated {
			continue
		}
		gated++
		switch f.Answer {
		case result.Regressed:
			regressed++
			if f.Change == nil {
				say("%s: %s", f.Name, f.Detail)
				continue
			}
			say("%s: %s (from %s to %s, with %.0f%% confidence in each bound)", f.Name, digits.Change(*f.Change), bound(f.Low), bound(f.High), 100*c.Plan.Confidence)
		case result.CouldNotTell:
			unknown++
			say("%s: could not tell: %s", f.Name, f.Detail)
		case result.Improved:
			improved++
		}
	}
	if gated == 0 {
		say("no metric decides the answer: all metrics are only advisory")
	}
	switch {
	case regressed > 0:
		c.Answer, c.ExitCode = result.Regressed, exitcode.Fail
	case unknown > 0 || gated == 0 || pairs == 0:
		c.Answer, c.ExitCode = result.CouldNotTell, exitcode.NoData
	case improved > 0:
		c.Answer, c.ExitCode = result.Improved, exitcode.Pass
	default:
		c.Answer, c.ExitCode = result.NotRegressed, exitcode.Pass
	}
}

func bound(v *float64) string {
	if v == nil {
		return "unknown"
	}
	return digits.Change(*v)
}

// decided reports whether the comparison needs no further pairs: a gated (deciding) metric regressed, or all of them
// have answers.
func decided(c result.AB) bool { return c.Answer != result.CouldNotTell }

// Replay returns the result that the comparison c would have with the given pairs, in this order. It ends the
// comparison at the first look (interim analysis) that gives an answer.
func Replay(c result.AB, pairs []result.Pair) result.AB {
	c.Figures, c.Pairs = slices.Clone(c.Figures), nil
	for _, p := range pairs {
		c.Pairs = append(c.Pairs, p)
		if !paired.IsLook(c.Plan, len(Counted(c.Pairs))) {
			continue
		}
		if judgePairs(&c); decided(c) {
			break
		}
	}
	return c
}
