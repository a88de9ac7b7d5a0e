// Package runmetrics opens recorded runs to query, serve and export their metrics. It never changes the directory of a
// run.
package runmetrics

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/prometheus/storage"

	"github.com/stormglass/stormglass/internal/exitcode"
	"github.com/stormglass/stormglass/internal/strictyaml"
	"github.com/stormglass/stormglass/loadgen/internal/archive"
	"github.com/stormglass/stormglass/loadgen/internal/judge/alerting"
	"github.com/stormglass/stormglass/loadgen/internal/rundir"
	"github.com/stormglass/stormglass/loadgen/result"
)

// RunLabel is the label that distinguishes the series of different runs. Its value is the name of the run.
const RunLabel = "run"

// Run is an open recorded run.
type Run struct {
	Dir string
	// Start and End are the first and the last time at which all targets were scraped.
	Start, End time.Time
	// Interval is the time between two samples of a series.
	Interval time.Duration

	rec   *rundir.Recorded
	rules storage.Queryable // results of the rules; nil before Replayed
}

// Open opens the run in dir. It returns a usage error if dir is not the directory of a run, and a *result.Damaged if
// the archive is damaged or missing.
func Open(ctx context.Context, dir string) (r *Run, err error) {
	if rundir.IsComparison(dir) {
		return nil, exitcode.Usagef("%s contains the runs of several variants (name the subdirectory of one variant)", dir)
	}
	rec, err := rundir.OpenToShow(dir)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, rec.Close())
		}
	}()
	if rec.Archive == nil {
		return nil, fmt.Errorf("%s: %w", dir, rec.ArchiveDamage())
	}
	r = &Run{Dir: dir, Interval: rec.Interval, rec: rec}
	if r.Start, r.End, err = rec.Archive.Bounds(ctx); err != nil {
		return nil, rec.Unreadable(err)
	}
	return r, nil
}

// Close closes the files of the run.
func (r *Run) Close() error { return r.rec.Close() }

// Name returns the name of the run.
func (r *Run) Name() string { return rundir.Name(r.Dir, r.rec.Run.Variant) }

// Raw returns the scraped samples.
func (r *Run) Raw() storage.Queryable {
	q, _ := r.rec.Archive.Storage()
	return q
}

// Replayed returns the scraped samples and the results of the recording rules and alerts that Stormglass provides. It
// evaluates the rules only at the first call. It returns a *result.ReducedError if the run was downsampled, because
// alerts that fired in the run could then be missing.
func (r *Run) Replayed(ctx context.Context) (storage.Queryable, error) {
	if r.rec.Downsampled != nil {
		return nil, exitcode.Usagef("rules are not evaluated on downsampled metrics: %w", r.rec.Downsampled)
	}
	if r.rules == nil {
		set, err := alerting.Shipped()
		if err != nil {
			return nil, err
		}
		history, err := set.Replay(ctx, r.rec.Archive, alerting.Options{})
		if err != nil {
			return nil, fmt.Errorf("%s: evaluate the rules: %w", r.Dir, err)
		}
		r.rules = history.Written
	}
	return archive.Merge(r.Raw(), r.rules), nil
}

// Phase returns the phase with the given name, or a usage error if the run has no such phase.
func (r *Run) Phase(name string) (result.Phase, error) {
	phases := r.rec.Measurements.Phases
	if i := slices.IndexFunc(phases, func(p result.Phase) bool { return p.Name == name }); i >= 0 {
		return phases[i], nil
	}
	if len(phases) == 0 {
		for _, err := range r.rec.Damage {
			if d, ok := errors.AsType[*result.Damaged](err); ok && d.File == result.MeasurementsFile {
				return result.Phase{}, fmt.Errorf("%s: %w", r.Dir, err)
			}
		}
		return result.Phase{}, exitcode.Usagef("--phase %s: the run ended during its first phase, so no phase is complete (remove --phase)", name)
	}
	var names []string
	for _, p := range phases {
		names = append(names, p.Name)
	}
	hint := "it has " + strings.Join(names, ", ")
	if near := strictyaml.Suggest(name, names); near != "" {
		hint = "did you mean " + near + "?"
	}
	return result.Phase{}, exitcode.Usagef("--phase %s: the run has no such phase (%s)", name, hint)
}
