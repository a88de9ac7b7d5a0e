package main

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/stormglass/stormglass/loadgen/internal/ab"
	"github.com/stormglass/stormglass/loadgen/result"
)

// errNotRun is the error for a comparison that is incomplete and that the flag --run=false forbids to run.
var errNotRun = errors.New("it was not run")

// compare returns the result of the comparison with the given name. If it is incomplete, compare first runs or
// resumes `loadgen ab`.
func (o options) compare(ctx context.Context, name string, args ...string) (result.AB, error) {
	dir := filepath.Join(o.Dir, name)
	c, err := ab.Read(dir)
	switch _, absent := os.Stat(dir); {
	case err == nil && !c.Ended.IsZero():
		return c, nil
	case !o.Run:
		return c, errNotRun
	case errors.Is(absent, fs.ErrNotExist):
		args = append(args, "--out", dir)
	case err != nil:
		return c, err
	default:
		args = append(args, "--resume", dir)
	}
	if err := o.Do(ctx, name, append([]string{"ab", o.scenario}, args...)...); err != nil {
		return c, err
	}
	return ab.Read(dir)
}
