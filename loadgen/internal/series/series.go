// Package series starts runs one after another in one directory. A series can be resumed after an interrupt or a
// failure. Packages ab and capacity decide which runs to start, and judge them together.
package series

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/stormglass/stormglass/internal/exitcode"
	"github.com/stormglass/stormglass/internal/shell"
	"github.com/stormglass/stormglass/loadgen/internal/judge"
	"github.com/stormglass/stormglass/loadgen/internal/run"
	"github.com/stormglass/stormglass/loadgen/result"
)

// Series is a series of runs in progress.
type Series struct {
	// Member executes one run and judges it. Tests replace it with a function that returns known results.
	Member func(ctx context.Context, o run.Options) (result.Result, error)
	// OtherGenerator is run.OtherGenerator: it says how the machine or version of earlier runs differs, or returns "".
	OtherGenerator func(host result.Host, version string) string
	// Whole is the directory that the hint on --resume names. Empty means Dir.
	Whole string
	// Dir is the directory of the series. It is nil until Lock or Create succeeds.
	Dir *run.Directory

	resumed bool
}

// New returns a series of runs on real control planes.
func New() Series { return Series{Member: RunWhole, OtherGenerator: run.OtherGenerator} }

// Lock locks the directory of the series to resume. If resume is empty, it does nothing: Create then creates the
// directory of a new series.
func (s *Series) Lock(resume string) (err error) {
	if s.resumed = resume != ""; !s.resumed {
		return nil
	}
	s.Dir, err = run.ResumeDirectory(resume)
	return err
}

// Create creates and locks the directory of a new series.
func (s *Series) Create(out, name string, now time.Time) (err error) {
	s.Dir, err = run.MakeDirectory(out, name, now)
	return err
}

// Binary reads the controlplane binary at path, and sets *recorded to its digest. changed is true if a resumed series
// has another digest in *recorded.
func (s *Series) Binary(path string, recorded *string) (b Binary, changed bool, err error) {
	b, err = readBinary(path)
	switch {
	case err != nil:
	case s.resumed && b.Digest == "": // the first run reports that the binary is missing
	case s.resumed && b.Digest != *recorded:
		return b, true, nil
	default:
		*recorded = b.Digest
	}
	return b, false, err
}

// CheckGenerator returns an error if the earlier runs of a resumed series ran on another machine or with another
// version. runs and whole are the user's words for the runs and the series, such as "pairs" and "comparison".
func (s *Series) CheckGenerator(host result.Host, version, runs, whole string) error {
	if other := s.OtherGenerator(host, version); other != "" {
		return exitcode.Usagef("--resume %s: the earlier %s ran %s (resume on the same machine with the same loadgen, or start a new %s)", s.Dir.Path, runs, other, whole)
	}
	return nil
}

// Make executes one run in the subdirectory dir of the series. The seed of the run depends on its number.
func (s *Series) Make(ctx context.Context, o run.Options, dir string, number int) (result.Result, error) {
	seeded := *o.Scenario
	seeded.Seed += int64(number)
	o.Scenario, o.Out = &seeded, filepath.Join(s.Dir.Path, dir)
	if err := os.RemoveAll(o.Out); err != nil { // from an interrupted run
		return result.Result{}, exitcode.EnvironmentError(err)
	}
	return s.Member(ctx, o)
}

// ResumeHint returns a hint on how to resume the series with additional flags.
func (s *Series) ResumeHint(flags string) string {
	return fmt.Sprintf("to continue, run the same command with `%s--resume %s` instead of --out", flags, shell.Quote(cmp.Or(s.Whole, s.Dir.Path)))
}

// Abandon ends a series before it has results and returns the error to show. The reason is err, or an interrupt if ctx
// has ended. If keep is true, it keeps the directory after an error. Otherwise it removes the directory of a new
// series.
func (s *Series) Abandon(ctx context.Context, err error, keep bool) error {
	if err != nil && ctx.Err() == nil && keep {
		return endedFirst{EndedEarly(err) + "; " + s.ResumeHint(""), err}
	}
	left := s.Dir.Remove()
	if err == nil || ctx.Err() != nil {
		return run.Interrupted(left)
	}
	return errors.Join(err, left)
}

// Note returns the reason why the series ended before its last run, with a hint on how to resume it. It returns "" if
// the series was not interrupted and err is nil.
func (s *Series) Note(ctx context.Context, err error) string {
	switch {
	case ctx.Err() != nil:
		return "interrupted; " + s.ResumeHint("")
	case err != nil:
		return EndedEarly(err) + "; " + s.ResumeHint("")
	}
	return ""
}

// EndedEarly returns a one-line note on an error that ended a series of runs. It contains only the first line of the
// error, because the log of a component may follow.
func EndedEarly(err error) string {
	first, _, _ := strings.Cut(err.Error(), "\n")
	return "ended early: " + strings.TrimSuffix(first, ":")
}

// endedFirst is an error that ended a series before it had results, with the hint on how to resume it. It has one line,
// and the exit code of cause.
type endedFirst struct {
	text  string
	cause error
}

func (e endedFirst) Error() string { return e.text }
func (e endedFirst) Unwrap() error { return e.cause }

// EndedEarlyError is the error of a series of runs that ended because of an interrupt, or because the results of a run
// were unusable.
type EndedEarlyError string

func (e EndedEarlyError) Error() string { return string(e) }

// Unjudged returns true: the error means missing data, because there is nothing to compare.
func (e EndedEarlyError) Unjudged() bool { return true }

// RunWhole executes a run and judges it. It also returns an error if the environment of the run failed.
func RunWhole(ctx context.Context, o run.Options) (result.Result, error) {
	res, err := RunJudged(ctx, o)
	if err == nil && res.ExitCode == exitcode.Environment {
		err = exitcode.Environmentf("%s", strings.Join(res.Reasons, "; "))
	}
	return res, err
}

// RunJudged executes a run and judges it, even if the run was interrupted.
func RunJudged(ctx context.Context, o run.Options) (result.Result, error) {
	dir, err := run.Run(ctx, o)
	if dir == "" {
		return result.Result{}, err
	}
	res, judgeErr := judge.Judge(context.WithoutCancel(ctx), dir)
	return res, errors.Join(err, judgeErr)
}
