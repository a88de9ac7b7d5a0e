package ab

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/stormglass/stormglass/internal/exitcode"
	"github.com/stormglass/stormglass/internal/terminal"
	"github.com/stormglass/stormglass/internal/userfile"
	"github.com/stormglass/stormglass/loadgen/internal/report/chart"
	"github.com/stormglass/stormglass/loadgen/internal/rundir"
	"github.com/stormglass/stormglass/loadgen/result"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

// kept returns the files of a run that a baseline stores, in the order in which SaveBaseline writes them. The last file
// marks the directory as a run, so an incomplete copy does not count as a run.
func kept() []string { return []string{result.ResultFile, result.ScenarioFile, result.RunFile} }

// SaveBaseline copies the results of runs to the baseline in dir, and returns the number of copied runs. from lists the
// directories of the runs. SaveBaseline refuses runs whose scenario differs from the baseline's, runs that were cut
// short, and runs without compared metrics. It also refuses a dir that is a symbolic link.
func SaveBaseline(ctx context.Context, dir string, from []string) (n int, err error) {
	if info, err := os.Lstat(dir); err == nil && info.Mode()&fs.ModeSymlink != 0 {
		return 0, exitcode.Usagef("%s: a baseline cannot be a symbolic link (choose another name, or replace the link with a directory)", dir)
	}
	var all []recorded
	for _, f := range from {
		set, err := readSet(ctx, f)
		if err != nil {
			return 0, err
		}
		all = append(all, set...)
	}
	all = once(all)
	like := all[0]
	switch before, err := readSet(ctx, dir); {
	case err == nil:
		like = before[0]
	case !isNew(dir) && !errors.Is(err, errNoRun):
		return 0, err
	}
	for _, r := range all {
		if why := r.result.Run.CutShort(); why != "" {
			return 0, exitcode.Usagef("%s: %s, so its metrics do not cover a whole run (remove this run)", r.dir, why)
		}
		if !slices.ContainsFunc(r.result.Figures, func(f result.Figure) bool { return f.Value != nil }) {
			return 0, exitcode.Usagef("%s: the run measured nothing (a baseline needs runs with metrics)", r.dir)
		}
		if field := unlike(like.scenario, r.scenario); field != "" {
			return 0, exitcode.Usagef("%s and %s ran scenarios that differ in %s (a baseline needs runs of the same scenario)", like.dir, r.dir, field)
		}
	}
	for _, r := range all {
		to := filepath.Join(dir, r.result.Run.Started.UTC().Format("20060102-150405")+"-"+r.result.Run.ID)
		if err := os.MkdirAll(to, 0o700); err != nil {
			return n, exitcode.Usagef("%s: %w (specify another directory with --baselines)", dir, userfile.Cause(err))
		}
		for _, file := range kept() {
			text, err := result.ReadFile(r.dir, file)
			if err != nil {
				return n, fmt.Errorf("%s: %w", r.dir, err)
			}
			if err := rundir.WriteFile(filepath.Join(to, file), text); err != nil {
				return n, err
			}
		}
		n++
	}
	return n, nil
}

// isNew reports whether no file exists at path.
func isNew(path string) bool {
	_, err := os.Lstat(path)
	return errors.Is(err, fs.ErrNotExist)
}

// Baseline summarises a baseline, a set of saved runs. Scenario, Last and Versions come from its newest run.
type Baseline struct {
	Name     string          `json:"name"`
	Scenario string          `json:"scenario"`
	Runs     int             `json:"runs"`
	Last     time.Time       `json:"last"`
	Versions result.Versions `json:"versions"`
	Damage   string          `json:"damage,omitempty"` // why the runs cannot be read; empty if they can be read
}

// Baselines summarises each baseline in dir. It fails if dir contains no baseline.
func Baselines(ctx context.Context, dir string) ([]Baseline, error) {
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, exitcode.Usagef("%s: %w", dir, userfile.Cause(err))
	}
	all := []Baseline{}
	for _, e := range entries {
		set, err := readSet(ctx, filepath.Join(dir, e.Name()))
		switch {
		case err == nil:
			last := set[len(set)-1].result.Run
			all = append(all, Baseline{Name: e.Name(), Scenario: last.Scenario, Runs: len(set), Last: last.Started, Versions: last.Versions})
		case e.IsDir() && !errors.Is(err, errNoRun): // entries without runs are not baselines
			all = append(all, Baseline{Name: e.Name(), Damage: err.Error()})
		}
	}
	if len(all) == 0 {
		return nil, exitcode.Usagef("%s: the directory contains no baselines (save one with `loadgen baseline save NAME DIR`, or specify another directory with --baselines)", dir)
	}
	return all, nil
}

// WriteBaselines writes a line for each baseline.
func WriteBaselines(w io.Writer, all []Baseline) error {
	tab := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, b := range all {
		if b.Damage != "" {
			fmt.Fprintf(tab, "%s\tdamaged: %s\n", terminal.Clean(b.Name), terminal.Clean(b.Damage))
			continue
		}
		fmt.Fprintf(tab, "%s\t%s\t%d runs\tlast %s\tKubernetes %s\tStormglass %s\n", terminal.Clean(b.Name), terminal.Clean(b.Scenario), b.Runs,
			b.Last.UTC().Format("2006-01-02 15:04"), terminal.Clean(b.Versions.Kubernetes), terminal.Clean(b.Versions.Stormglass))
	}
	return tab.Flush()
}

// BaselineRun holds the data of a run in a baseline.
type BaselineRun struct {
	Run     result.Run      `json:"run"`
	Figures []result.Figure `json:"figures"`
}

// ReadBaseline reads the runs of a baseline.
func ReadBaseline(ctx context.Context, dir string) (runs []BaselineRun, err error) {
	set, err := readSet(ctx, dir)
	for _, r := range set {
		runs = append(runs, BaselineRun{r.result.Run, r.result.Figures})
	}
	return runs, err
}

// WriteBaseline writes, as text, the compared metrics of each run of a baseline.
func WriteBaseline(w io.Writer, runs []BaselineRun) error {
	for _, r := range runs {
		run := r.Run
		fmt.Fprintf(w, "%s  %s, seed %d, Kubernetes %s, %s\n", run.Started.UTC().Format("2006-01-02 15:04:05"), terminal.Clean(run.Scenario), run.Seed, terminal.Clean(run.Versions.Kubernetes), terminal.Clean(run.Host.CPUModel))
		tab := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
		for _, f := range r.Figures {
			value := chart.None
			if f.Value != nil {
				value = chart.Format(scenario.Unit(f.Unit), *f.Value)
			}
			if f.AtLeast {
				value = "at least " + value
			}
			fmt.Fprintf(tab, "  %s\t%s\n", terminal.Clean(f.Name), value)
		}
		if err := tab.Flush(); err != nil {
			return err
		}
	}
	return nil
}
