package cli

import (
	"errors"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/stormglass/stormglass/internal/commandline"
	"github.com/stormglass/stormglass/internal/exitcode"
	"github.com/stormglass/stormglass/loadgen/internal/report"
	"github.com/stormglass/stormglass/loadgen/internal/spans"
	"github.com/stormglass/stormglass/loadgen/result"
)

func newTrace() *cobra.Command {
	var output *commandline.Output
	var export string
	cmd := &cobra.Command{
		Use:   "trace DIR [ID]",
		Short: "Show the distributed traces of a run: where slow requests spent their time",
		Long: `Show the distributed traces that a run with --trace kept: for each load, verb and
phase the slowest requests, a random sample, and failed requests.

Without ID, the command lists the traces, the slowest first. With ID, or its first
characters, it shows the trace as a waterfall: one line for each span (an operation of
loadgen, an API server or etcd), from its start to its end. "critical" is the time by
which the response would have come earlier if the span had taken no time.

--export writes all traces, or the trace ID, to standard output: as OTLP/JSON, one line
for each trace, for Tempo and the OpenTelemetry Collector, or as JSON for Jaeger.`,
		Example: `  loadgen run rollout-demo --trace
  loadgen trace runs/20261121-101500-rollout-demo
  loadgen trace runs/20261121-101500-rollout-demo 3f1c
  loadgen trace runs/20261121-101500-rollout-demo --export jaeger > traces.json`,
		Args: cobra.RangeArgs(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			_, all, err := spans.Read(args[0])
			switch {
			case spans.Missing(err):
				return exitcode.Usagef("%s has no traces (run the scenario with --trace)", args[0])
			case err != nil:
				return exitcode.UsageError(err)
			}
			if len(args) == 2 {
				all = slices.DeleteFunc(all, func(t spans.Trace) bool { return !strings.HasPrefix(t.Trace.String(), strings.ToLower(args[1])) })
				if len(all) != 1 {
					return exitcode.Usagef("%d traces of %s have an ID that begins with %q ('loadgen trace %s' lists the IDs)", len(all), args[0], args[1], args[0])
				}
			}
			w := cmd.OutOrStdout()
			switch export {
			case "":
			case "jaeger":
				return spans.WriteJaeger(w, all)
			case "otlp":
				return writeOTLP(w, all)
			default:
				return exitcode.Usagef("--export %s: must be otlp or jaeger", export)
			}
			slices.SortStableFunc(all, func(a, b spans.Trace) int { return int(b.Duration() - a.Duration()) })
			traces := make([]result.Trace, len(all))
			for i := range all {
				traces[i] = all[i].Result()
			}
			if len(args) == 2 {
				return showAs(w, output, exitcode.Pass, traces[0], func() error { return report.TraceWaterfall(w, traces[0], textOptions(w, "")) })
			}
			return showAs(w, output, exitcode.Pass, traces, func() error { return report.Traces(w, traces, textOptions(w, "")) })
		},
	}
	cmd.Flags().StringVar(&export, "export", "", "write the traces in this `format`: otlp or jaeger")
	output = commandline.AddOutput(cmd)
	return cmd
}

// addTraceFlag adds the flag --trace, which overrides the field tracing.sample of a scenario.
func addTraceFlag(flags *pflag.FlagSet, sets *[]string) {
	flags.Func("trace", "trace this `share` of the loads' requests, such as 100%; without a share 5%", func(share string) error {
		*sets = append(*sets, "tracing.sample="+share)
		return nil
	})
	flags.Lookup("trace").NoOptDefVal = "5%"
}

func writeOTLP(w io.Writer, all []spans.Trace) error {
	var errs []error
	for i := range all {
		errs = append(errs, spans.WriteOTLP(w, all[i].All()))
	}
	return errors.Join(errs...)
}
