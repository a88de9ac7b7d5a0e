// Command diagnosis scores the diagnosis: it plants faults of known kinds on real control planes beside storms, and
// prints how often the diagnosis names their kind, component and beginning from metrics alone.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
)

func main() {
	var o options
	flag.StringVar(&o.dir, "dir", "runs/diagnosis", "`directory` of the runs; those that are there are not run again")
	flag.StringVar(&o.loadgen, "loadgen", "bin/loadgen", "the `binary`")
	flag.Int64Var(&o.seed, "seed", 1, "of the order of faults")
	only := flag.String("plans", "", "`plans` to run, as three-rollout,one-watches,healthy; default all")
	flag.BoolVar(&o.run, "run", true, "run what is not there; else score what is")
	flag.IntVar(&o.healthy, "healthy", 20, "runs of storms without a fault")
	flag.Parse()
	if *only != "" {
		o.plans = strings.Split(*only, ",")
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := score(ctx, o); err != nil {
		fmt.Fprintln(os.Stderr, "diagnosis:", err)
		os.Exit(1)
	}
}

type options struct {
	dir, loadgen string
	seed         int64
	plans        []string
	run          bool
	healthy      int
}

func score(ctx context.Context, o options) error {
	t, err := readTable()
	if err != nil {
		return err
	}
	fmt.Printf("seed %d\n\n", o.seed)
	var scored []trial
	for _, p := range t.plans(o) {
		dir := filepath.Join(o.dir, p.name)
		if err := p.record(ctx, o, dir); err != nil {
			return fmt.Errorf("%s: %w", p.name, err)
		}
		if _, err := os.Stat(dir); err != nil {
			continue
		}
		trials, err := p.judge(ctx, dir)
		if err != nil {
			return fmt.Errorf("%s: %w", p.name, err)
		}
		scored = append(scored, trials...)
	}
	print(os.Stdout, scored)
	return nil
}
