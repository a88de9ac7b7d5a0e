package cli

import (
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/stormglass/stormglass/internal/commandline"
	"github.com/stormglass/stormglass/internal/exitcode"
	"github.com/stormglass/stormglass/loadgen/internal/ab"
)

func newBaseline() *cobra.Command {
	var dir string
	cmd := &cobra.Command{
		Use:   "baseline",
		Short: "Save results of runs for later comparisons",
		Long: `A baseline is a directory with the results of runs: run.json, result.json and
scenario.yaml of each run. These files have the values of the metrics in the scenario's
section compare, but no time series. CI can store a baseline as an artifact or on a
branch. 'loadgen ab --a', 'loadgen compare' and 'loadgen trend' accept a baseline.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.PersistentFlags().StringVar(&dir, "baselines", "baselines", "`directory` of all baselines")
	commandline.OldName(cmd, "dir", "baselines")
	var listForm, showForm *commandline.Output
	save := &cobra.Command{
		Use:   "save NAME DIR...",
		Short: "Add the results of runs to a baseline",
		Long: `Copy the results of runs to the directory NAME in --baselines. DIR is a run, or a
directory of runs, for example the subdirectory a in which 'loadgen ab' stores A's runs.`,
		Example: `  loadgen baseline save main runs/20261123-101500-ci-gate-ab/a`,
		Args:    cobra.MinimumNArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			to, err := baselineDir(dir, args[0])
			if err != nil {
				return err
			}
			n, err := ab.SaveBaseline(cmd.Context(), to, args[1:])
			if err != nil {
				return err
			}
			sayTo(cmd.OutOrStdout())("%s: %d runs saved", to, n)
			return nil
		},
	}
	list := &cobra.Command{
		Use: "list", Short: "List the baselines", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			all, err := ab.Baselines(cmd.Context(), dir)
			if err != nil {
				return err
			}
			w := cmd.OutOrStdout()
			return listForm.Write(w, all, func() error { return ab.WriteBaselines(w, all) })
		},
	}
	listForm = commandline.AddOutput(list)
	show := &cobra.Command{
		Use: "show NAME", Short: "Print the compared metrics of each run in a baseline", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			from, err := baselineDir(dir, args[0])
			if err != nil {
				return err
			}
			runs, err := ab.ReadBaseline(cmd.Context(), from)
			if err != nil {
				return err
			}
			w := cmd.OutOrStdout()
			return showForm.Write(w, runs, func() error { return ab.WriteBaseline(w, runs) })
		},
	}
	showForm = commandline.AddOutput(show)
	cmd.AddCommand(save, list, show)
	return cmd
}

// baselineDir returns the directory of the baseline with the given name. `all` is the parent directory of all
// baselines. A name that contains a path is a usage error.
func baselineDir(all, name string) (string, error) {
	if name != filepath.Base(name) || name == "." || name == ".." || name == string(filepath.Separator) {
		return "", exitcode.Usagef("baseline %q: the name must not contain a path (to set the directory of all baselines, use --baselines)", name)
	}
	return filepath.Join(all, name), nil
}
