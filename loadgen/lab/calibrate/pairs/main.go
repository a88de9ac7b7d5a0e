// Pairs measures the error rates of `loadgen ab` on real control planes. It compares a configuration with itself,
// with planted regressions of known size, and with itself on a busy machine.
package main

import (
	"context"
	"flag"
	"fmt"
	"slices"
	"strings"

	"github.com/stormglass/stormglass/loadgen/lab/calibrate/runner"
)

func main() {
	var o options
	o.Flags("runs/calibrate")
	flag.StringVar(&o.scenario, "scenario", "ci-gate", "the `scenario` that is compared")
	flag.StringVar(&o.controlPlane, "controlplane", "bin/controlplane", "the `binary` that runs next to a planted neighbour")
	flag.IntVar(&o.comparisons, "comparisons", 20, "comparisons of one configuration with itself")
	flag.IntVar(&o.resamples, "resamples", 300, "comparisons that are resampled from their pairs")
	flag.Uint64Var(&o.seed, "seed", 1, "of the resampling")
	planted := flag.String("planted", "", "`regressions` to plant, as qps-18,neighbours-4; default all")
	parts := flag.String("parts", strings.Join(partNames(), ","), "`parts` to run and print")
	flag.Parse()
	o.parts = strings.Split(*parts, ",")
	if *planted != "" {
		o.planted = strings.Split(*planted, ",")
	}
	runner.Main("pairs", o.calibrate)
}

type options struct {
	runner.Runner
	scenario, controlPlane string
	comparisons, resamples int
	seed                   uint64
	parts, planted         []string
}

// parts lists the parts of the measurement in the order in which they run.
var parts = []struct {
	name string
	run  func(options, context.Context) error
}{
	{"planted", options.regressions},
	{"neighbour", options.busyMachine},
	{"same", options.oneConfiguration},
}

func partNames() (names []string) {
	for _, p := range parts {
		names = append(names, p.name)
	}
	return names
}

func (o options) calibrate(ctx context.Context) error {
	for _, name := range o.parts {
		if !slices.Contains(partNames(), name) {
			return fmt.Errorf("--parts %s: unknown (%s)", name, strings.Join(partNames(), ", "))
		}
	}
	for _, name := range o.planted {
		if !slices.Contains(plantedNames(), name) {
			return fmt.Errorf("--planted %s: unknown (%s)", name, strings.Join(plantedNames(), ", "))
		}
	}
	fmt.Printf("seed %d\n", o.seed)
	for _, p := range parts {
		if slices.Contains(o.parts, p.name) {
			if err := p.run(o, ctx); err != nil {
				return fmt.Errorf("%s: %w", p.name, err)
			}
		}
	}
	return nil
}
