package cli

import (
	"cmp"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/stormglass/stormglass/internal/commandline"
	"github.com/stormglass/stormglass/internal/exitcode"
	"github.com/stormglass/stormglass/loadgen/internal/report"
	"github.com/stormglass/stormglass/loadgen/internal/run"
	"github.com/stormglass/stormglass/loadgen/internal/spans"
	"github.com/stormglass/stormglass/loadgen/result"
)

func newTrace() *cobra.Command {
	var output *commandline.Output
	var export string
	var only traceFilter
	cmd := &cobra.Command{
		Use:   "trace DIR [ID | POD]",
		Short: "Show the distributed traces of a run: where slow requests spent their time",
		Long: `Show the distributed traces that a run with --trace kept: for each load, verb,
resource and phase the slowest requests, a random sample, and failed requests.

Without ID or POD, the command lists the 40 slowest traces, and up to 10 pods with the
writes that created them and made them ready. With --phase, --load, --client or
--failed, it lists all traces that match.

With ID, or its first characters, it shows the trace as a waterfall: one line for each
span (an operation of loadgen, an API server or etcd), from its start to its end.
"critical" is the time for which the response waited for the span itself, not for its
children.

With POD, as NAME or NAMESPACE/NAME, it shows the writes that created the pod and made it
ready.

--export writes the selected traces to standard output. The format otlp is OTLP/JSON,
one line for each trace, for Tempo and the OpenTelemetry Collector. The format jaeger is
JSON for Jaeger.`,
		Example: `  loadgen run rollout-demo --trace
  loadgen trace runs/20261121-101500-rollout-demo
  loadgen trace runs/20261121-101500-rollout-demo --phase update --load news
  loadgen trace runs/20261121-101500-rollout-demo 3f1c
  loadgen trace runs/20261121-101500-rollout-demo --export jaeger > traces.json`,
		Args: cobra.RangeArgs(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			dir, w := args[0], cmd.OutOrStdout()
			all, pods, err := readTraces(dir)
			if err != nil {
				return err
			}
			kept := len(all)
			if all, err = only.of(all); err != nil {
				return err
			}
			one := len(args) == 2
			if one {
				life, found, err := podNamed(pods, args[1])
				if err != nil {
					return err
				}
				if found && export == "" {
					return showAs(w, output, exitcode.Pass, life, func() error { return report.PodLife(w, life, textOptions(w, "")) })
				}
				all = slices.DeleteFunc(all, func(t spans.Trace) bool {
					id := t.Trace.String()
					if found {
						return !slices.ContainsFunc(life.Writes, func(w result.PodWrite) bool { return w.Trace == id })
					}
					return !strings.HasPrefix(id, strings.ToLower(args[1]))
				})
				if len(all) != 1 && !found {
					return exitcode.Usagef("%q is neither the name of a pod nor the beginning of exactly one trace ID: %d trace IDs begin with it ('loadgen trace %s' lists pods and trace IDs)", args[1], len(all), dir)
				}
			}
			switch export {
			case "":
			case "jaeger":
				return spans.WriteJaeger(w, all)
			case "otlp":
				return writeOTLP(w, all)
			default:
				return exitcode.Usagef("--export %s: must be otlp or jaeger", export)
			}
			slices.SortStableFunc(all, func(a, b spans.Trace) int { return cmp.Compare(b.Duration(), a.Duration()) })
			traces := make([]result.Trace, len(all))
			for i := range all {
				traces[i] = all[i].Result()
			}
			if one {
				return showAs(w, output, exitcode.Pass, traces[0], func() error { return report.TraceWaterfall(w, traces[0], textOptions(w, "")) })
			}
			list := report.TraceList{Shown: traces, Kept: kept, Pods: pods}
			if only != (traceFilter{}) {
				list.Pods = nil
			} else {
				list.Shown = traces[:min(len(traces), maxListed)]
			}
			return showAs(w, output, exitcode.Pass, traces, func() error {
				return report.Traces(w, list, textOptions(w, ""))
			})
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&only.phase, "phase", "", "select the traces of this `phase`")
	flags.StringVar(&only.load, "load", "", "select the traces of this `load`")
	flags.StringVar(&only.client, "client", "", "select the traces of this `client`, such as kube-scheduler (for loads, use --load)")
	flags.BoolVar(&only.failed, "failed", false, "select the traces of failed requests")
	flags.StringVar(&export, "export", "", "write the traces in this `format`: otlp or jaeger")
	output = commandline.AddOutput(cmd)
	return cmd
}

// maxListed is the maximum number of traces in a list without a filter.
const maxListed = 40

// readTraces returns the kept traces of the run in dir, and the lives of pods.
func readTraces(dir string) ([]spans.Trace, []result.PodLife, error) {
	if err := result.CheckReduced(dir); err != nil {
		return nil, nil, err
	}
	index, all, err := spans.Read(dir)
	switch {
	case spans.Missing(err):
		return nil, nil, exitcode.Usagef("%s has no traces (run the scenario with --trace)", dir)
	case err != nil:
		return nil, nil, exitcode.UsageError(err)
	}
	return all, index.Pods, nil
}

// podNamed returns the life of a pod. name is NAME or NAMESPACE/NAME. It returns false if no pod has the name, and fails if
// several pods have it.
func podNamed(pods []result.PodLife, name string) (life result.PodLife, found bool, err error) {
	for _, p := range pods {
		if p.Pod != name && !strings.HasSuffix(p.Pod, "/"+name) {
			continue
		}
		if found {
			return life, true, exitcode.Usagef("%s: %s and %s have this name (name one of them)", name, life.Pod, p.Pod)
		}
		life, found = p, true
	}
	return life, found, nil
}

// traceFilter selects traces. A field with its zero value selects all traces.
type traceFilter struct {
	phase, load, client string
	failed              bool // select only failed requests
}

// of returns the selected traces. It fails if no trace has the phase, load or client of the filter. It changes the
// slice `all`.
func (f traceFilter) of(all []spans.Trace) ([]spans.Trace, error) {
	for _, field := range []struct {
		name, want string
		get        func(*spans.Trace) string
	}{
		{"phase", f.phase, func(t *spans.Trace) string { return t.Phase }},
		{"load", f.load, func(t *spans.Trace) string { return t.Load }},
		{"client", f.client, func(t *spans.Trace) string { return t.Client }},
	} {
		if field.want == "" {
			continue
		}
		var known []string
		all = slices.DeleteFunc(all, func(t spans.Trace) bool {
			is := field.get(&t)
			if is != "" && !slices.Contains(known, is) {
				known = append(known, is)
			}
			return is != field.want
		})
		if len(all) == 0 {
			slices.Sort(known)
			return nil, exitcode.Usagef("--%s %s: no kept trace has this %s (%ss with traces: %s)", field.name, field.want, field.name, field.name, strings.Join(known, ", "))
		}
	}
	return slices.DeleteFunc(all, func(t spans.Trace) bool { return f.failed && !t.Failed() }), nil
}

// addTraceFlags adds the flag --trace, which overrides tracing.sample of the scenario, and the flags that say where a
// run on a user's cluster gets spans.
func addTraceFlags(flags *pflag.FlagSet, sets *[]string, s *run.SpanSources) {
	flags.Var(traceShare{sets}, "trace", "trace this `share` of the requests: --trace=100%, or --trace alone for 5%")
	flags.Lookup("trace").NoOptDefVal = "5%"
	flags.StringVar(&s.Listen, "trace-listen", "", "receive the spans of your cluster with OTLP/gRPC at this `address`, HOST:PORT")
	flags.StringVar(&s.TokenFile, "trace-token-file", "", "`file` with the bearer token that senders of spans must present")
	flags.StringVar(&s.ClientCA, "trace-client-ca", "", "`file` with the CA of the client certificates that senders of spans must present")
	flags.StringVar(&s.Cert, "trace-cert", "", "`file` with the receiver's TLS certificate, required unless --trace-listen is a loopback address")
	flags.StringVar(&s.Key, "trace-key", "", "`file` with the key of the receiver's TLS certificate")
	flags.StringVar(&s.File, "trace-file", "", "read the spans of your cluster from this `file`, to which an OpenTelemetry Collector appends OTLP/JSON")
}

// traceShare is the value of --trace, a percentage. Setting it adds an override of tracing.sample to sets.
type traceShare struct{ sets *[]string }

func (traceShare) String() string { return "" }
func (traceShare) Type() string   { return "percent" }

func (s traceShare) Set(text string) error {
	if err := new(percent).Set(text); err != nil {
		return err
	}
	*s.sets = append(*s.sets, "tracing.sample="+text)
	return nil
}

func writeOTLP(w io.Writer, all []spans.Trace) error {
	for i := range all {
		if err := spans.WriteOTLP(w, all[i].All()); err != nil {
			return err
		}
	}
	return nil
}
