package compare

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/stormglass/stormglass/internal/exitcode"
	"github.com/stormglass/stormglass/loadgen/internal/cluster"
	"github.com/stormglass/stormglass/loadgen/internal/judge"
	"github.com/stormglass/stormglass/loadgen/internal/judge/gate"
	"github.com/stormglass/stormglass/loadgen/internal/run"
	"github.com/stormglass/stormglass/loadgen/internal/rundir"
	"github.com/stormglass/stormglass/loadgen/result"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

// RunVariants runs all variants of a scenario, one after another, each on a plane
// of its own and in a directory of its name, and sets them side by side. A
// variant that cannot be run does not keep the others from running; an interrupt
// does, and those that have run are compared. An error means that there is
// nothing to compare, and then nothing is left.
func Run(ctx context.Context, o run.Options) (c result.Comparison, dir string, err error) {
	variants := o.Scenario.AllVariants()
	if len(variants) == 0 {
		return c, "", exitcode.Usagef("--variant all: scenario %s has no variants (write variants: [{name: ..., set: {...}}])", o.Scenario.Name)
	}
	for _, v := range variants {
		if err := CheckVariant(o.Scenario, v.Variant, o.Kubeconfig); err != nil {
			return c, "", err
		}
		if _, err := gate.Compile(v); err != nil {
			return c, "", exitcode.UsageError(err)
		}
		if err := run.CheckDescriptors(v); err != nil {
			return c, "", err
		}
	}
	if o.Kubeconfig.Files == "" && o.ControlPlane == "" { // said once, not by each
		if o.ControlPlane, err = run.FindControlPlane(); err != nil {
			return c, "", err
		}
	}
	c = newComparison(o.Scenario, time.Now().UTC())
	dir, made, err := rundir.Make(o.Out, o.Scenario.Name, c.Started)
	if err != nil {
		return c, "", err
	}
	if err := writeComparison(dir, c); err != nil {
		return c, "", errors.Join(err, rundir.Remove(dir, made))
	}
	results := map[string]result.Result{}
	var failed []error
	for i, v := range variants {
		if ctx.Err() != nil {
			c.Variants[i].NotRun = "the comparison was interrupted before its turn"
			continue
		}
		o.Progress.Step(fmt.Sprintf("variant %s, %d of %d", v.Variant, i+1, len(variants)))
		res, err := runVariant(ctx, o, v, filepath.Join(dir, v.Variant))
		if err != nil {
			failed = append(failed, fmt.Errorf("variant %s: %w", v.Variant, err))
			c.Variants[i].Left = run.Left(err)
			c.Variants[i].NotRun, c.Variants[i].ExitCode = strings.ReplaceAll(err.Error(), "\n", "; "), exitcode.Of(err)
			o.Progress.Step(fmt.Sprintf("variant %s did not run: %s", v.Variant, c.Variants[i].NotRun))
		} else {
			results[v.Variant] = res
		}
		fill(&c, results)
		if err := writeComparison(dir, c); err != nil { // for the report of one that is killed later on
			return c, dir, err
		}
	}
	if len(results) == 0 {
		left := rundir.Remove(dir, made)
		if len(failed) == 0 {
			return c, "", run.Interrupted(left)
		}
		return c, "", errors.Join(errors.Join(failed...), left)
	}
	c.Ended = time.Now().UTC()
	fill(&c, results)
	return c, dir, writeComparison(dir, c)
}

// runVariant runs and judges one variant.
func runVariant(ctx context.Context, o run.Options, v *scenario.Scenario, out string) (result.Result, error) {
	o.Scenario, o.Out = v, out
	dir, err := run.Run(ctx, o)
	if dir == "" {
		return result.Result{}, err
	}
	// Judged all the same where it was interrupted.
	res, judgeErr := judge.Judge(context.WithoutCancel(ctx), dir)
	return res, errors.Join(err, judgeErr)
}

// CheckVariant refuses a variant that is another control plane where the run is
// aimed at a user's cluster: it would be compared by what it is not.
func CheckVariant(s *scenario.Scenario, name string, kubeconfig cluster.Kubeconfig) error {
	i := slices.IndexFunc(s.Variants, func(v scenario.Variant) bool { return v.Name == name })
	if i < 0 || kubeconfig.Files == "" {
		return nil
	}
	for path := range s.Variants[i].Set {
		if path == "controlPlane" || strings.HasPrefix(path, "controlPlane.") {
			return exitcode.UsageError(s.Errorf(fmt.Sprintf("variants[%d].set", i), "run it without --kubeconfig",
				"variant %s sets %s, which is not applied to a cluster of yours", name, path))
		}
	}
	return nil
}
