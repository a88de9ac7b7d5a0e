package main

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"

	"github.com/stormglass/stormglass/loadgen/result"
)

// regression is a change of B that is known to be there.
type regression struct {
	name, what string
	b          []string
	// figure that it moves; decides alone where it is not one of those that decide by themselves.
	figure string
	alone  bool
}

// planted regressions, each small and large.
var plantedRegressions = []regression{
	{"qps-18", "QPS of the controllers 10% lower", []string{"controlPlane.controllerManager.qps=18"}, "rollout-time", false},
	{"qps-16", "QPS of the controllers 20% lower", []string{"controlPlane.controllerManager.qps=16"}, "rollout-time", false},
	{"webhook-2ms", "a webhook of 2 ms for ConfigMaps", []string{"phases.requests.faults=[{kind: webhook, resource: configmaps, delay: 2ms}]"}, "apiserver-allocated-per-request", false},
	{"webhook-10ms", "a webhook of 10 ms for ConfigMaps", []string{"phases.requests.faults=[{kind: webhook, resource: configmaps, delay: 10ms}]"}, "apiserver-allocated-per-request", false},
	{"cache-secrets", "no watch cache for Secrets", []string{`controlPlane.apiServer.flags={watch-cache-sizes: "secrets#0"}`}, "etcd-calls-per-request", false},
	{"cache-none", "no watch cache", []string{`controlPlane.apiServer.flags={watch-cache: "false"}`}, "etcd-calls-per-request", false},
	{"fsync-500us", "fsync 0.5 ms slower", []string{"phases.requests.faults=[{kind: slowFsync, delay: 500us}]"}, "fsync-mean", true},
	{"fsync-3ms", "fsync 3 ms slower", []string{"phases.requests.faults=[{kind: slowFsync, delay: 3ms}]"}, "fsync-mean", true},
}

// regressions compares the scenario with itself and a planted change in B.
func regressions(ctx context.Context, o options) error {
	fmt.Printf("\n## Planted regressions\n\n| planted | figure | change, 95%% bounds | answer | pairs | thrown away | other figures that regressed |\n|---|---|---|---|---:|---:|---|\n")
	for _, r := range plantedRegressions {
		var args []string
		for _, spec := range r.b {
			args = append(args, "--b", spec)
		}
		if r.alone {
			args = append(args, "--figure", r.figure)
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

// busyMachine compares one configuration with itself while two other processes use the processors.
func busyMachine(ctx context.Context, o options) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	if o.run {
		for range 2 {
			busy := exec.CommandContext(ctx, "sh", "-c", "while :; do :; done")
			if err := busy.Start(); err != nil {
				return err
			}
			defer func() { _ = busy.Wait() }() // it was killed
		}
		defer stop()
	}
	c, err := o.compare(ctx, neighbour, "--looks", "3", "--alpha", "1%")
	if errors.Is(err, errNotRun) {
		return nil
	}
	if err != nil {
		return err
	}
	fmt.Printf("\n## A busy neighbour\n\nTwo busy loops beside %s compared with itself: %s; %d pairs thrown away of %d.\n", c.Scenario, c.Answer, c.Thrown, len(c.Pairs)-1)
	return nil
}
