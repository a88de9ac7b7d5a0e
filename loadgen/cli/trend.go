package cli

import (
	"errors"
	"os"

	"github.com/spf13/cobra"

	"github.com/stormglass/stormglass/internal/commandline"
	"github.com/stormglass/stormglass/internal/exitcode"
	"github.com/stormglass/stormglass/loadgen/internal/ab"
	"github.com/stormglass/stormglass/loadgen/internal/report"
)

func newTrend() *cobra.Command {
	var html string
	var output *commandline.Output
	cmd := &cobra.Command{
		Use:   "trend DIR...",
		Short: "Find where figures changed over many recorded runs",
		Long: `Read recorded runs of one scenario in the order in which they started, and find where
a figure changed: E-divisive means, with a t-test (p at most 0.001) and a change of at
least 5%. Each DIR is a run, a baseline, or a directory that contains these.

Use trend for a history of nightly runs, and ` + "`loadgen ab`" + ` for a pull request.`,
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
			if html != "" {
				f, err := openOutput("--html", html, os.O_CREATE|os.O_TRUNC)
				if err != nil {
					return err
				}
				if err := errors.Join(report.TrendHTML(f, t), f.Close()); err != nil {
					return err
				}
			}
			w := cmd.OutOrStdout()
			return showAs(w, output, exitcode.Pass, t, func() error {
				return report.Trend(w, t, textOptions(w, ""))
			})
		},
	}
	cmd.Flags().StringVar(&html, "html", "", "`file` for a page with a chart of each figure; an existing file is replaced only if this command wrote it earlier")
	output = commandline.AddOutput(cmd)
	return cmd
}
