package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
)

// compare measures the sides in turns and prints a table.
func compare(ctx context.Context, c benchmark, j job, pairs int, stdout, stderr io.Writer) error {
	all := make([][][]figure, len(c.sides)) // by side and round
	for round := range pairs {
		for i, s := range c.sides {
			fmt.Fprintf(stderr, "%s: %s, %d of %d\n", c.name, s.name, round+1, pairs)
			j.Side = s.name
			figures, err := apart(ctx, j, stderr)
			if err != nil {
				return err
			}
			all[i] = append(all[i], figures)
		}
	}
	fmt.Fprintf(stdout, "\n%s: %s\n\n", c.name, c.what)
	w := tabwriter.NewWriter(stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "figure\tside\tmedian\tmin..max\t%s (median, min..max)\n", cmp.Or(c.ratio, "theirs / ours"))
	for f, first := range all[0][0] {
		for i, s := range c.sides {
			values := column(all[i], f)
			ratio := "-"
			if i > 0 {
				ratio = ratios(column(all[0], f), values)
			}
			fmt.Fprintf(w, "%s\t%s\t%s\t%s..%s\t%s\n", first.Name, s.name,
				show(median(values), first.Unit), show(slices.Min(values), ""), show(slices.Max(values), ""), ratio)
		}
	}
	return w.Flush()
}

func column(rounds [][]figure, f int) (values []float64) {
	for _, figures := range rounds {
		values = append(values, figures[f].Value)
	}
	return values
}

// ratios are those of the pairs.
func ratios(ours, theirs []float64) string {
	var all []float64
	for i := range ours {
		if ours[i] <= 0 {
			return "-"
		}
		all = append(all, theirs[i]/ours[i])
	}
	return fmt.Sprintf("%.1f, %.1f..%.1f", median(all), slices.Min(all), slices.Max(all))
}

func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	n := len(sorted)
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}

func show(v float64, unit string) string {
	digits := 2
	if v >= 100 {
		digits = 0
	} else if v >= 10 {
		digits = 1
	}
	if unit != "" {
		unit = " " + unit
	}
	return fmt.Sprintf("%.*f%s", digits, v, unit)
}
