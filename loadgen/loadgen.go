// Package loadgen drives load at a Kubernetes control plane and judges what
// happened. Run runs a scenario (package scenario) and leaves a directory; Judge
// reads that directory, and nothing else, and gives a Result (package result):
//
//	s, err := scenario.Read("rollout-500", nil)
//	dir, err := loadgen.Run(ctx, loadgen.Options{Scenario: s, Progress: progress})
//	res, err := loadgen.Judge(ctx, dir)
//
// Everything that a run learns is in its directory as it goes on, so a run that was
// killed can be judged too.
package loadgen

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/stormglass/stormglass/internal/exitcode"
	"github.com/stormglass/stormglass/loadgen/internal/cluster"
	"github.com/stormglass/stormglass/loadgen/internal/compare"
	"github.com/stormglass/stormglass/loadgen/internal/judge/gate"
	"github.com/stormglass/stormglass/loadgen/internal/record/promimport"
	"github.com/stormglass/stormglass/loadgen/internal/run"
	"github.com/stormglass/stormglass/loadgen/result"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

// Exit codes of a judged run, and of one that never began.
const (
	ExitPass        = exitcode.Pass
	ExitNoData      = exitcode.NoData
	ExitEnvironment = exitcode.Environment
	ExitUsage       = exitcode.Usage
)

type (
	// Options of a run.
	Options = run.Options
	// Progress receives the steps and the state of a run, from several goroutines.
	Progress = run.Progress
	// Snapshot is the state of a run.
	Snapshot = run.Snapshot
	// Plan lists what a run will make in a user's cluster.
	Plan = cluster.Plan
	// Prometheus names a Prometheus whose samples are copied in place of scrapes.
	Prometheus = promimport.Config
)

// Run runs a scenario and returns its directory. An error means that there is
// nothing to judge; a run that was interrupted, or whose environment failed
// under it, has a directory that says so.
func Run(ctx context.Context, o Options) (dir string, err error) { return run.Run(ctx, o) }

// RunVariants runs all variants of a scenario, one after another, each on a plane
// of its own and in a directory of its name, and compares them. A variant that
// cannot run does not stop the others; an interrupt does, and those that have run
// are compared. An error means that there is nothing to compare.
func RunVariants(ctx context.Context, o Options) (c result.Comparison, dir string, err error) {
	return compare.Run(ctx, o)
}

// Check reports what is wrong with the gates of a scenario and of its variants.
func Check(s *scenario.Scenario) error {
	return s.Check(func(s *scenario.Scenario) error {
		if _, err := gate.Compile(s); err != nil {
			return err
		}
		var errs []error
		for _, v := range s.AllVariants() {
			_, err := gate.Compile(v)
			errs = append(errs, err)
		}
		return errors.Join(errs...)
	})
}

// Warnings says in a line each what is probably not meant in a scenario and in its
// variants.
func Warnings(s *scenario.Scenario) []string {
	all := append(s.Warnings(), gate.Warnings(s)...)
	for _, v := range s.AllVariants() {
		for _, w := range v.Warnings() {
			if !slices.Contains(all, w) {
				all = append(all, w)
			}
		}
	}
	if len(s.Gates) == 0 {
		all = append(all, fmt.Sprintf("%s has no gates: a run of it judges nothing, and exits with 3", s.Name))
	}
	return all
}

// CheckVariant refuses a variant that sets fields of the control plane in a run on a
// user's cluster, where they are not applied.
func CheckVariant(s *scenario.Scenario, name string, kubeconfig Kubeconfig) error {
	return compare.CheckVariant(s, name, kubeconfig)
}

// CheckPrometheus reports what is wrong with p, without connecting.
func CheckPrometheus(p Prometheus) error {
	_, err := promimport.New(p)
	return err
}

// Usage marks an error as the user's to mend: ExitUsage.
func Usage(err error) error { return exitcode.UsageError(err) }

// ExitCode returns the exit code for an error.
func ExitCode(err error) int { return exitcode.Of(err) }

// Version returns the version of the build.
func Version() string { return run.Version() }
