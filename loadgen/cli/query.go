package cli

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/stormglass/stormglass/internal/commandline"
	"github.com/stormglass/stormglass/internal/exitcode"
	"github.com/stormglass/stormglass/loadgen/internal/runmetrics"
)

func newQuery() *cobra.Command {
	var o queryOptions
	var output *commandline.Output
	cmd := &cobra.Command{
		Use:   "query DIR EXPR",
		Short: "Evaluate PromQL over a recorded run",
		Long: `Evaluate a PromQL expression over the recorded metrics of a run and the results of the
built-in rules (recording rules and ALERTS). The run's directory is not changed.

Without --range, the expression is evaluated once: at the last scrape, at the end of
--phase, or at --at. With --range, it is evaluated at each --step of the phase or run.

Queries of Grafana dashboards work unchanged. $__range is the length of the phase or
run, $__rate_interval is four scrape intervals, and $cluster and $instance match all
values.

An expression without a value prints nothing, and the exit code is 0.`,
		Example: `  loadgen query runs/20261121-101500-slow-fsync 'increase(apiserver_request_total[$__range])' --phase slow
  loadgen query runs/20261121-101500-slow-fsync 'ALERTS{alertstate="firing"}' --range -o csv > alerts.csv`,
		Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkQuery(cmd, o); err != nil {
				return err
			}
			o.Expr = args[1]
			return queryRun(cmd.Context(), args[0], o, func(a runmetrics.Answer) error {
				w := cmd.OutOrStdout()
				if a.Empty() {
					fmt.Fprintln(cmd.ErrOrStderr(), "loadgen: the expression has no value at that time")
				}
				return output.Write(w, a.Data(), func() error {
					if output.String() == "csv" {
						return a.WriteCSV(w)
					}
					return a.WriteText(w)
				})
			})
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&o.At, "at", "", "`time` of the evaluation: 90s (since the first scrape), 14:00:00 (UTC) or 2026-11-21T14:00:00Z (default: the last scrape)")
	flags.StringVar(&o.Phase, "phase", "", "`name` of a phase: evaluate at its end, or with --range during it")
	flags.BoolVar(&o.Range, "range", false, "evaluate at each --step of the phase or run, not once")
	flags.DurationVar(&o.Step, "step", 0, "`time` between evaluations with --range (default: the scrape interval)")
	output = commandline.AddOutput(cmd, "csv")
	return cmd
}

func checkQuery(cmd *cobra.Command, o queryOptions) error {
	switch {
	case o.At != "" && o.Phase != "":
		return exitcode.Usagef("--at and --phase cannot be used together (--phase evaluates at the end of the phase)")
	case o.At != "" && o.Range:
		return exitcode.Usagef("--at and --range cannot be used together (--range evaluates over the whole run, or over --phase)")
	case cmd.Flags().Changed("step") && !o.Range:
		return exitcode.Usagef("--step applies only to --range (add --range)")
	case cmd.Flags().Changed("step") && o.Step < time.Millisecond:
		return exitcode.Usagef("--step %s is out of bounds (1ms or more)", o.Step)
	}
	return nil
}
