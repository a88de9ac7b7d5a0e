package ab

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"text/tabwriter"

	"github.com/stormglass/stormglass/internal/exitcode"
	"github.com/stormglass/stormglass/internal/userfile"
	"github.com/stormglass/stormglass/loadgen/internal/report/chart"
	"github.com/stormglass/stormglass/loadgen/internal/rundir"
	"github.com/stormglass/stormglass/loadgen/result"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

// kept are the files of a run that a baseline keeps.
func kept() []string { return []string{result.RunFile, result.ResultFile, result.ScenarioFile} }

// SaveBaseline puts the results of the runs in from beside those that the baseline has, and returns how many it put.
// All are of one scenario.
func SaveBaseline(ctx context.Context, dir string, from []string) (n int, err error) {
	var all []recorded
	for _, f := range from {
		set, err := readSet(ctx, f)
		if err != nil {
			return 0, err
		}
		all = append(all, set...)
	}
	like := all[0]
	if before, err := readSet(ctx, dir); err == nil {
		like = before[0]
	}
	for _, r := range all {
		if field := unlike(like.scenario, r.scenario); field != "" {
			return 0, exitcode.Usagef("%s and %s differ in %s of the scenario (a baseline is of one)", like.dir, r.dir, field)
		}
	}
	for _, r := range all {
		to := filepath.Join(dir, r.result.Run.Started.UTC().Format("20060102-150405")+"-"+r.result.Run.ID)
		if err := os.MkdirAll(to, 0o700); err != nil {
			return n, exitcode.Usagef("%s: %w (name another with --dir)", dir, userfile.Cause(err))
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

// ListBaselines writes a line for each baseline in dir.
func ListBaselines(w io.Writer, dir string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return exitcode.Usagef("%s: there are no baselines (`loadgen baseline save NAME DIR` saves one; --dir names another directory)", dir)
	}
	if err != nil {
		return exitcode.Usagef("%s: %w", dir, userfile.Cause(err))
	}
	tab := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, e := range entries {
		set, err := readSet(context.Background(), filepath.Join(dir, e.Name()))
		if err != nil {
			continue // something else that lies there
		}
		last := set[len(set)-1].result.Run
		fmt.Fprintf(tab, "%s\t%s\t%d runs\tlast %s\tKubernetes %s\tStormglass %s\n", e.Name(), chart.Clean(last.Scenario), len(set),
			last.Started.UTC().Format("2006-01-02 15:04"), chart.Clean(last.Versions.Kubernetes), chart.Clean(last.Versions.Stormglass))
	}
	return tab.Flush()
}

// ShowBaseline writes the figures of each run of a baseline.
func ShowBaseline(ctx context.Context, w io.Writer, dir string) error {
	set, err := readSet(ctx, dir)
	if err != nil {
		return err
	}
	for _, r := range set {
		run := r.result.Run
		fmt.Fprintf(w, "%s  %s, seed %d, Kubernetes %s, %s\n", run.Started.UTC().Format("2006-01-02 15:04:05"), chart.Clean(run.Scenario), run.Seed, chart.Clean(run.Versions.Kubernetes), chart.Clean(run.Host.CPUModel))
		tab := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
		for _, f := range r.result.Figures {
			value := chart.None
			if f.Value != nil {
				value = chart.Format(scenario.Unit(f.Unit), *f.Value)
			}
			fmt.Fprintf(tab, "  %s\t%s\n", chart.Clean(f.Name), value)
		}
		if err := tab.Flush(); err != nil {
			return err
		}
	}
	return nil
}
