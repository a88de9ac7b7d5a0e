package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"

	"gonum.org/v1/gonum/stat"

	"github.com/stormglass/stormglass/loadgen/internal/ab"
	"github.com/stormglass/stormglass/loadgen/lab/calibrate/runner"
	"github.com/stormglass/stormglass/loadgen/result"
)

// oneConfiguration compares a configuration with itself several times, as a user would. It then resamples more
// comparisons from the recorded pairs.
func (o options) oneConfiguration(ctx context.Context) error {
	answers := map[result.Answer]int{}
	var c result.AB
	var pairs []result.Pair
	n, planes, thrown := 0, 0, 0
	for i := range o.comparisons {
		one, err := o.compare(ctx, fmt.Sprintf("same-%02d", i+1), "--set", fmt.Sprintf("seed=%d", 1000*(i+1)))
		if errors.Is(err, errNotRun) {
			continue
		}
		if err != nil {
			return err
		}
		answers[one.Answer]++
		n, planes, thrown = n+1, planes+2*len(one.Pairs), thrown+one.Thrown
		c, pairs = one, append(pairs, ab.Counted(one.Pairs)...)
	}
	fmt.Printf("\n## A configuration compared with itself\n\n%d comparisons of %s from end to end, %d pairs on %d planes, %d pairs discarded: %s. Alarms: %s.\n",
		n, o.scenario, len(pairs), planes, thrown, countsOf(answers), runner.Share(answers[result.Regressed], n))
	if n == 0 || len(pairs) < c.Plan.Most() {
		return nil
	}
	o.resample(c, pairs)
	return nil
}

// resample replays comparisons of randomly drawn pairs. For unchanged pairs, a comparison must not raise an alarm. For
// pairs in which one metric of B was raised, it must raise an alarm.
func (o options) resample(c result.AB, pairs []result.Pair) {
	rng := rand.New(rand.NewPCG(o.seed, 0))
	answers := map[result.Answer]int{}
	for range o.resamples {
		answers[ab.Replay(c, draw(rng, pairs, c.Plan.Most())).Answer]++
	}
	fmt.Printf("\n%d comparisons resampled from these pairs: %s. Alarms: %s.\n\n", o.resamples, countsOf(answers), runner.Share(answers[result.Regressed], o.resamples))
	fmt.Printf("| figure that decides | spread | found at +5%% | +10%% | +20%% |\n|---|---:|---:|---:|---:|\n")
	for _, f := range c.Figures {
		if !f.Gated {
			continue
		}
		row := fmt.Sprintf("| %s | %.1f%% |", f.Name, 100*spread(pairs, f.Name))
		for _, change := range []float64{1.05, 1.10, 1.20} {
			found := 0
			for range o.resamples {
				if regressed(ab.Replay(c, raise(draw(rng, pairs, c.Plan.Most()), f.Name, change)), f.Name) {
					found++
				}
			}
			row += " " + runner.Share(found, o.resamples) + " |"
		}
		fmt.Println(row)
	}
}

// draw draws n pairs without replacement. It swaps A and B of each pair at random, because both sides have the same
// configuration.
func draw(rng *rand.Rand, from []result.Pair, n int) []result.Pair {
	pairs := make([]result.Pair, n)
	for i, at := range rng.Perm(len(from))[:n] {
		p := from[at]
		if rng.IntN(2) == 1 {
			p.A, p.B = p.B, p.A
		}
		p.Number = i + 1
		pairs[i] = p
	}
	return pairs
}

// raise multiplies one metric of side B by a factor, in all pairs.
func raise(pairs []result.Pair, figure string, by float64) []result.Pair {
	for i := range pairs {
		pairs[i].B.Values = maps.Clone(pairs[i].B.Values)
		pairs[i].B.Values[figure] *= by
	}
	return pairs
}

// spread returns the standard deviation of ln(B/A) of a metric over all pairs.
func spread(pairs []result.Pair, figure string) float64 {
	var all []float64
	for _, p := range pairs {
		all = append(all, math.Log(p.B.Values[figure]/p.A.Values[figure]))
	}
	return stat.StdDev(all, nil)
}

func regressed(c result.AB, figure string) bool {
	at := slices.IndexFunc(c.Figures, func(f result.ABFigure) bool { return f.Name == figure })
	return at >= 0 && c.Figures[at].Answer == result.Regressed
}

func countsOf(answers map[result.Answer]int) string {
	var all []string
	for _, a := range slices.Sorted(maps.Keys(answers)) {
		all = append(all, fmt.Sprintf("%s %d", a, answers[a]))
	}
	return strings.Join(all, ", ")
}
