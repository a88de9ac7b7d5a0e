package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/stormglass/stormglass/loadgen/internal/ab"
	"github.com/stormglass/stormglass/loadgen/internal/judge/paired"
	"github.com/stormglass/stormglass/loadgen/result"
)

// oneConfiguration runs pairs of one configuration, and resamples comparisons from them: as they are, which must give no
// alarm, and with a known change of one figure of B, which must be found.
func oneConfiguration(ctx context.Context, o options) error {
	c, err := o.compare(ctx, same, "--looks", fmt.Sprint(o.pairs), "--alpha", "1%")
	if err != nil {
		return err
	}
	pairs := counted(c)
	fmt.Printf("\n## One configuration\n\n%d pairs of %s on %d planes, %d thrown away.\n\n", len(pairs), c.Scenario, 2*len(c.Pairs), c.Thrown)
	c.Plan = paired.Default()
	if len(pairs) < c.Plan.Most() {
		return fmt.Errorf("%d pairs are fewer than a comparison may need, %d", len(pairs), c.Plan.Most())
	}
	rng := rand.New(rand.NewPCG(o.seed, 0))
	answers := map[result.Answer]int{}
	for range o.resamples {
		answers[ab.Replay(c, resample(rng, pairs, c.Plan.Most())).Answer]++
	}
	fmt.Printf("%d comparisons resampled, A beside A: %s. Alarms: %s.\n\n", o.resamples, countsOf(answers), share(answers[result.Regressed], o.resamples))
	fmt.Printf("| figure | spread | found at +5%% | +10%% | +20%% |\n|---|---:|---:|---:|---:|\n")
	for _, f := range c.Figures {
		if !f.Gated || f.Spread == nil {
			continue
		}
		row := fmt.Sprintf("| %s | %.1f%% |", f.Name, 100**f.Spread)
		for _, change := range []float64{1.05, 1.10, 1.20} {
			found := 0
			for range o.resamples {
				if regressed(ab.Replay(c, raised(resample(rng, pairs, c.Plan.Most()), f.Name, change)), f.Name) {
					found++
				}
			}
			row += " " + share(found, o.resamples) + " |"
		}
		fmt.Println(row)
	}
	return nil
}

// resample draws n pairs without replacement. Which side of a pair is called A is drawn too: they are the same.
func resample(rng *rand.Rand, from []result.Pair, n int) []result.Pair {
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

// raised multiplies one figure of B.
func raised(pairs []result.Pair, figure string, by float64) []result.Pair {
	for i := range pairs {
		pairs[i].B.Values = maps.Clone(pairs[i].B.Values)
		pairs[i].B.Values[figure] *= by
	}
	return pairs
}

func regressed(c result.AB, figure string) bool {
	at := slices.IndexFunc(c.Figures, func(f result.ABFigure) bool { return f.Name == figure })
	return at >= 0 && c.Figures[at].Answer == result.Regressed
}

// endToEnd runs comparisons of one configuration with itself as a user would.
func endToEnd(ctx context.Context, o options) error {
	answers := map[result.Answer]int{}
	planes, thrown := 0, 0
	for i := range o.whole {
		c, err := o.compare(ctx, fmt.Sprintf("%s-%02d", whole, i+1), "--set", fmt.Sprintf("seed=%d", 1000*(i+1)))
		if errors.Is(err, errNotRun) {
			break
		}
		if err != nil {
			return err
		}
		answers[c.Answer]++
		planes, thrown = planes+2*len(c.Pairs), thrown+c.Thrown
	}
	n := 0
	for _, count := range answers {
		n += count
	}
	fmt.Printf("\n## From end to end\n\n%d comparisons of %s with itself on %d planes, %d pairs thrown away: %s. Alarms: %s.\n", n, o.scenario, planes, thrown, countsOf(answers), share(answers[result.Regressed], n))
	return nil
}

func countsOf(answers map[result.Answer]int) string {
	var all []string
	for _, a := range slices.Sorted(maps.Keys(answers)) {
		all = append(all, fmt.Sprintf("%s %d", a, answers[a]))
	}
	return strings.Join(all, ", ")
}

func share(n, of int) string {
	if of == 0 {
		return "none ran"
	}
	return fmt.Sprintf("%d of %d (%.1f%%)", n, of, 100*float64(n)/float64(of))
}
