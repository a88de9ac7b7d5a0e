package cli

import (
	"github.com/spf13/cobra"

	"github.com/stormglass/stormglass/internal/commandline"
	"github.com/stormglass/stormglass/loadgen/internal/ab"
	"github.com/stormglass/stormglass/loadgen/internal/judge/paired"
	"github.com/stormglass/stormglass/loadgen/internal/report"
)

func newCompare() *cobra.Command {
	plan := paired.Default()
	var gated []string
	var out string
	var output *commandline.Output
	var sum summary
	cmd := &cobra.Command{
		Use:   "compare A B",
		Short: "Compare recorded runs of one scenario",
		Long: `Compare two sets of recorded runs of one scenario. A and B are each the directory of a
run, or a directory that contains runs, for example a baseline.

With at least three runs in each set, Welch's t-test of the values' logarithms decides
at the significance level 1% whether B is worse. With fewer runs, the output shows only
the change (exit code 3). The output also lists differences in configuration, versions,
host and seeds.

A change of the machine between the two sets looks like a change of B. 'loadgen ab'
avoids this, because it alternates runs of A and B.

Exit codes ('loadgen ab --help' defines the answers):
  0  improved or not regressed
  1  regressed
  3  could not tell`,
		Example: `  loadgen compare runs/before runs/after
  loadgen compare baselines/main runs/new --metric apiserver-cpu`,
		Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := sum.check(); err != nil {
				return err
			}
			c, err := ab.Compare(cmd.Context(), plan, gated, args[0], args[1])
			if err != nil {
				return err
			}
			dir := ""
			if out != "" {
				if dir, err = ab.Write(out, c); err != nil {
					return err
				}
			}
			return after(sum, showReport(cmd.OutOrStdout(), output, c.ExitCode, c, report.AB, dir), c, report.ABSummary)
		},
	}
	cmd.Flags().StringArrayVar(&gated, "metric", nil, "`name` of a metric in the section compare that decides; the value \"all\" selects all metrics (repeatable; default: the metrics that vary least)")
	percentVar(cmd.Flags(), &plan.Change, "change", "smallest change that counts as regressed or improved")
	percentVar(cmd.Flags(), &plan.Margin, "margin", "\"not regressed\" requires an upper bound of the change below this")
	percentVar(cmd.Flags(), &plan.Confidence, "confidence", "confidence level of the one-sided bounds of a change")
	percentVar(cmd.Flags(), &plan.Spread, "spread", "without --metric, only metrics whose spread (in the section compare) is at most this decide")
	commandline.OldName(cmd, "figure", "metric")
	discardFlags(cmd, &plan.Throw, "ignore a run")
	cmd.Flags().StringVar(&out, "out", "", "new `directory` for ab.json, ab.html and junit.xml (default: write no files)")
	sum.flag(cmd)
	output = commandline.AddOutput(cmd)
	return cmd
}
