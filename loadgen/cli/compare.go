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
		Long: `Compare two sets of recorded runs of one scenario. A and B are each the directory
of a run, or a directory that contains runs: an A/B comparison, a baseline, or
runs that you collected.

The output begins with known differences between the sets: configuration, versions,
host, seeds. With three or more runs on each side, Welch's t-test of the logarithms
decides whether B is worse; with fewer runs the change is shown without an error
rate. If the machine changed between the sets, this counts as a change of B. To avoid
this, use ` + "`loadgen ab`" + `, which alternates runs of A and B.

Exit codes: 0 not regressed or improved, 1 regressed, 3 could not tell.`,
		Example: `  loadgen compare runs/20261121-101500-ci-gate runs/20261122-090000-ci-gate
  loadgen compare baselines/main runs/new --figure apiserver-cpu`,
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
			return after(sum, showAB(cmd.OutOrStdout(), dir, c, output), c, report.ABSummary)
		},
	}
	cmd.Flags().StringArrayVar(&gated, "figure", nil, "`name` of a figure that decides the answer, instead of the figures that vary least (repeatable)")
	percentVar(cmd.Flags(), &plan.Change, "change", "smallest change that counts as a regression or an improvement")
	percentVar(cmd.Flags(), &plan.Margin, "margin", "the answer is \"not regressed\" if the upper bound of the change is below this")
	percentVar(cmd.Flags(), &plan.Confidence, "confidence", "one-sided confidence of each bound of a change")
	percentVar(cmd.Flags(), &plan.Spread, "spread", "figures that vary more than this between identical runs do not decide the answer")
	throwFlags(cmd.Flags(), &plan.Throw, "leave a run out")
	cmd.Flags().StringVar(&out, "out", "", "new `directory` for ab.json, ab.html and junit.xml (default: write no files)")
	sum.flag(cmd)
	output = commandline.AddOutput(cmd)
	return cmd
}
