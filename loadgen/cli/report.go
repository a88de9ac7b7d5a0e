package cli

import (
	"github.com/spf13/cobra"

	"github.com/stormglass/stormglass/internal/commandline"
	"github.com/stormglass/stormglass/loadgen/internal/compare"
	"github.com/stormglass/stormglass/loadgen/internal/judge"
	"github.com/stormglass/stormglass/loadgen/internal/report"
	"github.com/stormglass/stormglass/loadgen/internal/rundir"
)

func newReport() *cobra.Command {
	var output *commandline.Output
	var one chart
	var sum summary
	cmd := &cobra.Command{
		Use:   "report DIR",
		Short: "Check a recorded run against its gates again and rebuild its report",
		Long: `Check a recorded run against its gates again, and rebuild result.json, junit.xml and
report.html from its directory. 'loadgen --help' lists the exit codes. If the directory
contains the runs of variants, the command checks and compares them all.

--charts and --chart only list or write charts, and do not check the gates.`,
		Example: `  loadgen report runs/20261121-101500-rollout-500
  loadgen report runs/20261121-101500-rollout-500 -o json | jq .verdict
  loadgen report runs/20261121-101500-rollout-500 --chart wal-fsync-p99 --svg fsync.svg`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := one.check(cmd); err != nil {
				return err
			}
			if err := sum.check(); err != nil { // check creates the file
				return err
			}
			if one.requested() {
				return one.run(cmd, args[0], output)
			}
			if rundir.IsComparison(args[0]) {
				c, err := compare.Compare(cmd.Context(), args[0])
				if err != nil {
					return err
				}
				return after(sum, showReport(cmd.OutOrStdout(), output, c.ExitCode, c, report.Comparison, args[0]), c, report.ComparisonSummary)
			}
			res, err := judge.Judge(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			return after(sum, showReport(cmd.OutOrStdout(), output, res.ExitCode, res, report.Terminal, args[0]), res, report.Summary)
		},
	}
	sum.flag(cmd)
	output = commandline.AddOutput(cmd)
	one.flags(cmd)
	return cmd
}
