// Command diagnosis measures how well the diagnosis of Stormglass works. On real control planes under heavy load
// (storms), it plants (injects) faults of known kinds. It prints how often the diagnosis finds the kind, the component
// and the start of each fault from metrics alone.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/stormglass/stormglass/loadgen/lab/calibrate/runner"
)

func main() {
	var o options
	o.Flags("runs/diagnosis")
	flag.Int64Var(&o.seed, "seed", 1, "seed of the order of faults")
	only := flag.String("plans", "", "`plans` to run, as three-rollout,one-watches,healthy; default: all except pairs, which combine every pair of faults with every storm")
	flag.IntVar(&o.healthy, "healthy", 20, "runs of storms without a fault")
	flag.IntVar(&o.busy, "busy", 0, "busy loops that run next to every run")
	flag.StringVar(&o.faultless, "faultless", "", "a `pattern` of directories of recorded runs without a fault, such as 'capacity/*/trial-*'; only prints the causes named in them")
	flag.Parse()
	if *only != "" {
		o.plans = strings.Split(*only, ",")
	}
	runner.Main("diagnosis", o.score)
}

type options struct {
	runner.Runner
	seed    int64
	plans   []string
	healthy int
	// busy is the number of processes that each keep a processor busy during all runs.
	busy int
	// faultless is a glob pattern for the directories of recorded runs without a fault.
	faultless string
}

func (o options) score(ctx context.Context) error {
	if o.faultless != "" {
		return printFaultless(ctx, os.Stdout, o.faultless)
	}
	t, err := readTable()
	if err != nil {
		return err
	}
	fmt.Printf("seed %d, with %d busy loops\n\n", o.seed, o.busy)
	var scored []trial
	var failed error
	for _, p := range t.plans(o) {
		dir := filepath.Join(o.Dir, p.name)
		if err := p.record(ctx, o, dir); err != nil {
			return fmt.Errorf("%s: %w", p.name, err)
		}
		if _, err := os.Stat(dir); err != nil {
			continue
		}
		trials, err := p.judge(ctx, dir)
		if why := tooMuch(""); errors.As(err, &why) {
			fmt.Printf("discarded, because the storm alone was too much for the machine: %s: %s\n", p.name, why)
		} else if err != nil {
			failed = errors.Join(failed, fmt.Errorf("%s: %w", p.name, err))
		}
		scored = append(scored, trials...)
	}
	print(os.Stdout, scored)
	return failed
}
