package cli

import (
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/stormglass/stormglass/internal/commandline"
	"github.com/stormglass/stormglass/internal/exitcode"
	"github.com/stormglass/stormglass/loadgen/internal/ab"
	"github.com/stormglass/stormglass/loadgen/internal/report"
	"github.com/stormglass/stormglass/loadgen/internal/runs/site"
)

func newTrend() *cobra.Command {
	var html string
	var output *commandline.Output
	cmd := &cobra.Command{
		Use:   "trend DIR...",
		Short: "Find changes in metrics over many recorded runs",
		Long: `Find where a metric changed over many recorded runs of one scenario, for example
nightly runs. Each DIR is a run, a baseline, or a directory that contains these.

The method is change-point detection ("E-divisive with means") with a t-test (p at most
0.001), on the runs in start order. Only changes of at least 5% are shown, and single
values far from their neighbours are left out. For a pull request, use 'loadgen ab'.`,
		Example: `  loadgen trend baselines/nightly
  loadgen trend baselines/nightly --html trend.html`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkWritable("--html", html, `name="generator" content="Stormglass"`); err != nil {
				return err
			}
			t, err := ab.Trend(cmd.Context(), args)
			if err != nil {
				return err
			}
			err = writeOutput("--html", html, os.O_TRUNC, func(w io.Writer) error {
				index, err := openIndex(args)
				if err != nil {
					return err
				}
				return site.WriteTrend(cmd.Context(), w, index)
			})
			if err != nil {
				return err
			}
			return showReport(cmd.OutOrStdout(), output, exitcode.Pass, t, report.Trend, "")
		},
	}
	cmd.Flags().StringVar(&html, "html", "", "HTML `file` with a chart of each metric; replaces an existing file only if this command wrote it")
	output = commandline.AddOutput(cmd)
	return cmd
}
