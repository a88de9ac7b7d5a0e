package main

import (
	"github.com/spf13/cobra"

	"github.com/stormglass/stormglass/internal/commandline"
	"github.com/stormglass/stormglass/loadgen"
)

func newCompare() *cobra.Command {
	plan := loadgen.DefaultPlan()
	var gated []string
	var out string
	var output *commandline.Output
	var sum summary
	cmd := &cobra.Command{
		Use:   "compare A B",
		Short: "Compare recorded runs of one scenario",
		Long: `Compare two sets of recorded runs of one scenario. A and B are each the directory
of a run, or one with such directories in it: of an A/B comparison, a baseline, or
runs that were put together.

What tells the sets apart besides chance comes first: configuration, versions,
host, seeds. With three runs and more of each side a t-test of the logarithms
(Welch's) tells whether B is worse; with fewer the change is shown without an
error rate. What happened to the machine between the sets counts as B's: only
` + "`loadgen ab`" + ` runs A and B side by side.

Exit codes: 0 not regressed or improved, 1 regressed, 3 could not tell.`,
		Example: `  loadgen compare runs/20261121-101500-ci-gate runs/20261122-090000-ci-gate
  loadgen compare baselines/main runs/new --figure apiserver-cpu`,
		Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := sum.check(); err != nil {
				return err
			}
			c, err := loadgen.CompareRuns(cmd.Context(), plan, gated, args[0], args[1])
			if err != nil {
				return err
			}
			dir := ""
			if out != "" {
				if dir, err = loadgen.WriteAB(out, c); err != nil {
					return err
				}
			}
			return after(sum, showAB(cmd.OutOrStdout(), dir, c, output), c, loadgen.WriteABMarkdown)
		},
	}
	cmd.Flags().StringArrayVar(&gated, "figure", nil, "a figure of this `name` decides, in place of those that are calibrated (repeatable)")
	percentVar(cmd.Flags(), &plan.Change, "change", "the least change that is called one")
	percentVar(cmd.Flags(), &plan.Margin, "margin", "not regressed: the change is surely below it")
	percentVar(cmd.Flags(), &plan.Confidence, "confidence", "of the bounds of a change, one-sided")
	percentVar(cmd.Flags(), &plan.Spread, "spread", "figures with a larger calibrated spread do not decide")
	throwFlags(cmd.Flags(), &plan.Throw, "leave a run out")
	cmd.Flags().StringVar(&out, "out", "", "new `directory` for ab.json, ab.html and junit.xml (default: none is written)")
	sum.flag(cmd)
	output = commandline.AddOutput(cmd)
	return cmd
}
