// Command pairs measures the error rates of `loadgen ab` on real control planes: comparisons of a configuration with
// itself, regressions of known size, and a machine that is busy with something else.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
)

func main() {
	var o options
	flag.StringVar(&o.dir, "dir", "runs/calibrate", "`directory` of the comparisons; those that have ended are not run again")
	flag.StringVar(&o.loadgen, "loadgen", "bin/loadgen", "the `binary`")
	flag.StringVar(&o.scenario, "scenario", "ci-gate", "the `scenario` that is compared")
	flag.IntVar(&o.pairs, "pairs", 30, "pairs of one configuration, from which comparisons are resampled")
	flag.IntVar(&o.resamples, "resamples", 300, "comparisons that are resampled")
	flag.IntVar(&o.whole, "comparisons", 20, "comparisons of one configuration, run from end to end")
	flag.Uint64Var(&o.seed, "seed", 1, "of the resampling")
	flag.BoolVar(&o.run, "run", true, "run what is not there; else print what is")
	parts := flag.String("parts", strings.Join(partNames, ","), "`parts` to run and print")
	flag.Parse()
	o.parts = strings.Split(*parts, ",")
	for _, p := range o.parts {
		if !slices.Contains(partNames, p) {
			fmt.Fprintf(os.Stderr, "pairs: --parts %s: it has %s\n", p, strings.Join(partNames, ", "))
			os.Exit(2)
		}
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := calibrate(ctx, o); err != nil {
		fmt.Fprintln(os.Stderr, "pairs:", err)
		os.Exit(1)
	}
}

type options struct {
	dir, loadgen, scenario  string
	pairs, resamples, whole int
	seed                    uint64
	run                     bool
	parts                   []string
}

// The parts, in the order in which they run.
const (
	same      = "same"
	whole     = "end-to-end"
	planted   = "planted"
	neighbour = "neighbour"
)

var partNames = []string{same, whole, planted, neighbour}

func calibrate(ctx context.Context, o options) error {
	fmt.Printf("seed %d\n", o.seed)
	steps := map[string]func(context.Context, options) error{same: oneConfiguration, whole: endToEnd, planted: regressions, neighbour: busyMachine}
	for _, name := range partNames {
		if !slices.Contains(o.parts, name) {
			continue
		}
		if err := steps[name](ctx, o); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}
