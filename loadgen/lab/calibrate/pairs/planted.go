package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/stormglass/stormglass/loadgen/lab/calibrate/runner"
	"github.com/stormglass/stormglass/loadgen/result"
)

// regression is a known change that is planted in side B.
type regression struct {
	name, what string
	b          string // setting of side B, for the flag --b; empty if `neighbours` is set
	neighbours int    // number of processes that each keep a processor busy next to B's control plane
	// figure is the compared metric on which the change has the largest effect. `alone` makes this metric, which may be
	// advisory, the only one that decides the answer.
	figure string
	alone  bool
}

// plantedRegressions lists each kind of regression in two sizes, small and large.
var plantedRegressions = []regression{
	{name: "qps-18", what: "QPS of the controllers 10% lower", b: "controlPlane.controllerManager.qps=18", figure: "rollout-time"},
	{name: "qps-16", what: "QPS of the controllers 20% lower", b: "controlPlane.controllerManager.qps=16", figure: "rollout-time"},
	{name: "webhook-2ms", what: "a webhook of 2 ms for ConfigMaps", b: "phases.requests.faults=[{kind: webhook, resource: configmaps, delay: 2ms}]", figure: "create-mean"},
	{name: "webhook-10ms", what: "a webhook of 10 ms for ConfigMaps", b: "phases.requests.faults=[{kind: webhook, resource: configmaps, delay: 10ms}]", figure: "create-mean"},
	{name: "cache-secrets", what: "no watch cache for Secrets", b: `controlPlane.apiServer.flags={watch-cache-sizes: "secrets#0"}`, figure: "apiserver-allocated-per-request"},
	{name: "cache-none", what: "no watch cache", b: `controlPlane.apiServer.flags={watch-cache: "false"}`, figure: "apiserver-allocated-per-request"},
	{name: "fsync-500us", what: "fsync 0.5 ms slower", b: "phases.requests.faults=[{kind: slowFsync, delay: 500us}]", figure: "fsync-mean", alone: true},
	{name: "fsync-3ms", what: "fsync 3 ms slower", b: "phases.requests.faults=[{kind: slowFsync, delay: 3ms}]", figure: "fsync-mean", alone: true},
	{name: "neighbours-1", what: "a busy process next to the API server", neighbours: 1, figure: "get-mean", alone: true},
	{name: "neighbours-4", what: "four busy processes next to the API server", neighbours: 4, figure: "get-mean", alone: true},
}

func plantedNames() (names []string) {
	for _, r := range plantedRegressions {
		names = append(names, r.name)
	}
	return names
}

// regressions runs one comparison for each regression, planted in side B, and prints a row with the result.
func (o options) regressions(ctx context.Context) error {
	fmt.Printf("\n## Planted regressions\n\n| planted | figure | change, 95%% bounds | answer | pairs | discarded | other figures that regressed |\n|---|---|---|---|---:|---:|---|\n")
	for _, r := range plantedRegressions {
		if len(o.planted) > 0 && !slices.Contains(o.planted, r.name) {
			continue
		}
		args, err := r.args(o)
		if err != nil {
			return err
		}
		c, err := o.compare(ctx, "planted-"+r.name, args...)
		if errors.Is(err, errNotRun) {
			continue
		}
		if err != nil {
			return fmt.Errorf("%s: %w", r.name, err)
		}
		var others []string
		row := "| " + r.what + " | " + r.figure + " | no data | | | |"
		for _, f := range c.Figures {
			switch {
			case f.Name == r.figure && f.Change != nil && f.Low != nil && f.High != nil:
				row = fmt.Sprintf("| %s | %s | %+.1f%% (%+.1f to %+.1f) | %s | %d | %d |", r.what, r.figure, 100**f.Change, 100**f.Low, 100**f.High, f.Answer, f.Pairs, c.Thrown)
			case f.Name != r.figure && f.Answer == result.Regressed:
				others = append(others, f.Name)
			}
		}
		fmt.Printf("%s %s |\n", row, strings.Join(others, ", "))
	}
	return nil
}

// args returns the arguments of `loadgen ab` that plant the regression.
func (r regression) args(o options) ([]string, error) {
	args := []string{"--b", r.b}
	if r.neighbours > 0 {
		program, err := o.besideNeighbours(r)
		if err != nil {
			return nil, err
		}
		args = []string{"--b", program, "--discard-other", "100%"} // the busy processes are the planted regression
	}
	if r.alone {
		args = append(args, "--metric", r.figure)
	}
	return args, nil
}

// besideNeighbours writes a script that runs controlplane and busy processes, and returns the script's path. The busy
// processes end when controlplane ends.
func (o options) besideNeighbours(r regression) (string, error) {
	controlPlane, err := filepath.Abs(o.controlPlane)
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(o.Dir, 0o755); err != nil {
		return "", err
	}
	program := filepath.Join(o.Dir, r.name)
	text := fmt.Sprintf(`#!/bin/sh
# kill -0 tells whether the plane, which keeps the process ID of this shell, is still there.
for i in $(seq %d); do
	while kill -0 $$ 2>/dev/null; do j=0; while [ $j -lt 100000 ]; do j=$((j+1)); done; done </dev/null >/dev/null 2>&1 &
done
exec '%s' "$@"
`, r.neighbours, controlPlane)
	return program, os.WriteFile(program, []byte(text), 0o755)
}

// busyMachine compares a configuration with itself while two busy loops each use one processor.
func (o options) busyMachine(ctx context.Context) error {
	if o.Run {
		defer runner.Busy(ctx, 2)()
	}
	c, err := o.compare(ctx, "neighbour", "--looks", "3", "--alpha", "1%")
	if errors.Is(err, errNotRun) {
		return nil
	}
	if err != nil {
		return err
	}
	fmt.Printf("\n## A busy machine\n\nTwo busy loops next to %s, compared with itself: %s; %d pairs discarded of %d.\n", c.Scenario, c.Answer, c.Thrown, len(c.Pairs)-1)
	return nil
}
