package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/stormglass/stormglass/loadgen/internal/ab"
	"github.com/stormglass/stormglass/loadgen/result"
)

// errNotRun is the error of a comparison that is not there and is not to be run.
var errNotRun = errors.New("it was not run")

// compare runs `loadgen ab` in a directory, or goes on with it, or reads it where it has ended.
func (o options) compare(ctx context.Context, name string, args ...string) (result.AB, error) {
	dir := filepath.Join(o.dir, name)
	c, err := ab.Read(dir)
	switch _, absent := os.Stat(dir); {
	case err == nil && !c.Ended.IsZero():
		return c, nil
	case errors.Is(absent, fs.ErrNotExist):
		args = append(args, "--out", dir)
	case err != nil:
		return c, err
	default:
		args = append(args, "--resume", dir)
	}
	if !o.run {
		return c, errNotRun
	}
	if err := os.MkdirAll(o.dir, 0o755); err != nil {
		return c, err
	}
	log, err := os.Create(filepath.Join(o.dir, name+".log"))
	if err != nil {
		return c, err
	}
	defer log.Close()
	cmd := exec.CommandContext(ctx, o.loadgen, append([]string{"ab", o.scenario}, args...)...)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Run(); err != nil && (cmd.ProcessState == nil || cmd.ProcessState.ExitCode() == 2 || cmd.ProcessState.ExitCode() == 4) {
		return c, fmt.Errorf("%w (%s)", err, log.Name())
	}
	if ctx.Err() != nil {
		return c, ctx.Err()
	}
	return ab.Read(dir)
}

// counted are the pairs that count, numbered from 1.
func counted(c result.AB) (pairs []result.Pair) {
	for _, p := range c.Pairs {
		if p.Number > 0 && p.Thrown == "" {
			p.Number = len(pairs) + 1
			pairs = append(pairs, p)
		}
	}
	return pairs
}
