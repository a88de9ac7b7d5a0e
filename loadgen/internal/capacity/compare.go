package capacity

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/stormglass/stormglass/internal/digits"
	"github.com/stormglass/stormglass/internal/exitcode"
	"github.com/stormglass/stormglass/loadgen/result"
)

// Compare compares two recorded searches of the same scenario field. It computes the capacity of B divided by the
// capacity of A from the posterior distributions of both capacities.
func Compare(dirs [2]string) (c result.CapacityComparison, err error) {
	c = result.CapacityComparison{Schema: result.CapacityComparisonSchema}
	var of [2]*Search
	for i, dir := range dirs {
		s, err := Read(dir)
		if err != nil {
			return c, err
		}
		c.Sides[i] = result.CapacitySide{Dir: dir, Capacity: s}
		if of[i], err = replay(s); err != nil {
			return c, exitcode.Usagef("%s: %v", dir, err)
		}
	}
	a, b := c.Sides[0].Capacity, c.Sides[1].Capacity
	if a.Scenario != b.Scenario || a.Field != b.Field || a.Unit != b.Unit {
		return c, exitcode.Usagef("%s raised %s of scenario %s, but %s raised %s of scenario %s, so their capacities are not comparable", dirs[0], a.Field, a.Scenario, dirs[1], b.Field, b.Scenario)
	}
	if a.Digest != b.Digest {
		return c, exitcode.Usagef("the scenarios of %s and %s differ in more than the control plane, its faults and the range, so their capacities are not comparable (compare their files trial-01/scenario.yaml)", dirs[0], dirs[1])
	}
	c.InTurns = a.InTurns && b.InTurns && a.Started.Before(b.Ended) && b.Started.Before(a.Ended)
	return conclude(c, of), nil
}

// conclude sets the differences between the searches, the answer, and the interval of the ratio of the capacities.
func conclude(c result.CapacityComparison, of [2]*Search) result.CapacityComparison {
	c.Differences = differences(c.Sides[0].Capacity, c.Sides[1].Capacity)
	low, _, high := ratio(of[0].shown(c.Sides[0]), of[1].shown(c.Sides[1]))
	// Use the ratio of the medians and not the median of the ratio, because the report shows the medians too. The two
	// are close but not equal.
	median := min(max(of[1].median(c.Sides[1])/of[0].median(c.Sides[0]), low), high)
	isLower := [2]bool{low > 1, high < 1}
	for i, s := range c.Sides {
		// If a search found no capacity, there is still an answer if its capacity can only lie further away from the
		// other capacity.
		further := s.MayBeLower() && isLower[i] || s.MayBeHigher() && isLower[1-i]
		if s.Answer != string(Found) && !further {
			c.Answer, c.ExitCode, c.Why = "could not tell", exitcode.NoData, s.Dir+": "+s.Answer
			return c
		}
	}
	c.Low, c.Median, c.High = low, median, high
	switch {
	case high < 1:
		c.Answer, c.ExitCode = "B is lower", exitcode.Fail
	case low > 1:
		c.Answer = "B is higher"
	default:
		c.Answer = "no difference seen"
	}
	return c
}

// replay returns a search with the posterior distribution that the trials of a recorded search give.
func replay(c result.Capacity) (*Search, error) {
	o := Default(c.From, c.To)
	o.Width, o.Trials = cmp.Or(c.Width, o.Width), max(o.Trials, len(c.Trials)+1)
	s, err := New(o)
	if err != nil {
		return nil, err
	}
	for _, t := range c.Trials {
		if outcome := Outcome(t.Outcome); outcome.counts() {
			s.update(t.Load, outcome)
		}
	}
	return s, nil
}

// differences returns the settings, versions and hosts that differ between two searches.
func differences(a, b result.Capacity) []result.Difference {
	all := []result.Difference{}
	of, other := facts(a), facts(b)
	for _, name := range slices.Sorted(maps.Keys(of)) {
		if of[name] != other[name] {
			all = append(all, result.Difference{Name: name, A: of[name], B: other[name]})
		}
	}
	if d, ok := generators(a, b); ok {
		all = append(all, d)
	}
	return all
}

// sameCost is the largest ratio of two CPU times per request at which they count as equal.
const sameCost = 1.1

// generators compares the generator's CPU time per request between the two searches, at the highest load that was good
// in both. The generator does the same work in each, so a difference means that the machine was faster in one search.
func generators(a, b result.Capacity) (d result.Difference, differ bool) {
	cost := func(t result.Trial) float64 { return t.Cores["loadgen"] / t.Achieved }
	highest := 0.0
	for _, x := range a.Trials {
		for _, y := range b.Trials {
			held := x.Outcome == string(Good) && y.Outcome == string(Good) && x.Load == y.Load && x.Achieved > 0 && y.Achieved > 0
			if !held || x.Load <= highest || cost(x) == 0 || cost(y) == 0 {
				continue
			}
			highest = x.Load
			d = result.Difference{Name: fmt.Sprintf("generator's CPU per request, at %g", x.Load), A: digits.Format(1e3*cost(x), 3) + " ms", B: digits.Format(1e3*cost(y), 3) + " ms"}
			differ = math.Abs(math.Log(cost(y)/cost(x))) > math.Log(sameCost)
		}
	}
	return d, differ
}

func facts(c result.Capacity) map[string]string {
	f := result.Facts(c.Versions, c.Host)
	f["control plane, faults and seed"] = c.PlaneDigest[:min(12, len(c.PlaneDigest))]
	f["binary"] = c.Build[:min(12, len(c.Build))]
	f["range"] = fmt.Sprintf("%v to %v", c.From, c.To)
	f["conditions that end a trial"] = cmp.Or(strings.Join(c.AbortOn, ", "), "none")
	f["settings"] = cmp.Or(strings.Join(c.Overrides, ", "), "as written")
	return f
}

// share is one possible capacity in a posterior distribution. log is its natural logarithm, weight its probability.
type share struct{ log, weight float64 }

// ratio returns the median and the 90% interval of the capacity of B divided by the capacity of A. a and b are the
// posterior distributions of the capacities.
func ratio(a, b []share) (low, median, high float64) {
	var all []share
	for _, x := range a {
		for _, y := range b {
			if w := x.weight * y.weight; w > 1e-12 {
				all = append(all, share{y.log - x.log, w})
			}
		}
	}
	slices.SortFunc(all, func(x, y share) int { return cmp.Compare(x.log, y.log) })
	at := func(q float64) float64 {
		sum := 0.0
		for _, s := range all {
			if sum += s.weight; sum >= q {
				return math.Exp(s.log)
			}
		}
		return math.Exp(all[len(all)-1].log)
	}
	return at((1 - confidence) / 2), at(0.5), at((1 + confidence) / 2)
}

// median returns the median of the posterior distribution of the capacity. If the capacity may exceed the tested loads,
// it returns the highest good load if that is lower.
func (s *Search) median(of result.CapacitySide) float64 {
	if of.MayBeHigher() {
		return min(s.quantile(0.5), *of.Held)
	}
	return s.quantile(0.5)
}

// shown returns the posterior distribution of the capacity. If the capacity may exceed the tested loads, shown moves
// all weight above the highest good load to that load.
func (s *Search) shown(of result.CapacitySide) []share {
	most := math.Inf(1)
	if of.MayBeHigher() {
		most = math.Log(*of.Held)
	}
	all := make([]share, len(s.weight))
	for i, row := range s.weight {
		all[i].log = min(s.logs[i], most)
		for _, w := range row {
			all[i].weight += w
		}
	}
	return all
}
