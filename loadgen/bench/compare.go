package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"runtime"
	"runtime/debug"
	"slices"
	"syscall"
	"text/tabwriter"
	"time"

	"github.com/prometheus/procfs"
)

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

type cost struct {
	cpu    time.Duration
	allocs uint64
}

func costNow() (cost, error) {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return cost{}, err
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return cost{time.Duration(u.Utime.Nano() + u.Stime.Nano()), m.Mallocs}, nil
}

func costOf(work func() error) (cost, error) {
	from, err := costNow()
	if err != nil {
		return cost{}, err
	}
	if err := work(); err != nil {
		return cost{}, err
	}
	to, err := costNow()
	return cost{to.cpu - from.cpu, to.allocs - from.allocs}, err
}

// per is the cost of each of n units called unit.
func (c cost) per(n int64, unit string) []figure {
	return []figure{
		{"CPU per " + unit, "us", float64(c.cpu.Nanoseconds()) / 1e3 / float64(n)},
		{"allocations per " + unit, "", float64(c.allocs) / float64(n)},
	}
}

// memory is the memory in use after a garbage collection, in bytes: the Go heap
// and stacks, and the resident set once free pages were given back.
type memory struct{ live, rss float64 }

func memoryNow() (memory, error) {
	debug.FreeOSMemory() // collects first
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	p, err := procfs.Self()
	if err != nil {
		return memory{}, err
	}
	s, err := p.Stat()
	if err != nil {
		return memory{}, err
	}
	return memory{float64(m.HeapAlloc + m.StackInuse), float64(s.ResidentMemory())}, nil
}

// per is the growth since an earlier reading, of each of n units.
func (m memory) per(before memory, n int, unit string) []figure {
	return []figure{
		{"heap and stacks per " + unit, "KB", (m.live - before.live) / 1e3 / float64(n)},
		{"resident memory per " + unit, "KB", (m.rss - before.rss) / 1e3 / float64(n)},
	}
}
