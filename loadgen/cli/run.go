package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/stormglass/stormglass/internal/commandline"
	"github.com/stormglass/stormglass/internal/exitcode"
	"github.com/stormglass/stormglass/internal/terminal"
	"github.com/stormglass/stormglass/loadgen/internal/cluster"
	"github.com/stormglass/stormglass/loadgen/internal/compare"
	"github.com/stormglass/stormglass/loadgen/internal/judge"
	"github.com/stormglass/stormglass/loadgen/internal/report"
	"github.com/stormglass/stormglass/loadgen/internal/run"
)

func newRun(signals *interrupts) *cobra.Command {
	var o run.Options
	var yes bool
	var variant string
	var output *commandline.Output
	var sum summary
	var labels labelFlag
	var prometheus prometheusFlags
	var receiver remoteWriteFlags
	var workers workerFlags
	var kubeconfig kubeconfigFlags
	var fuse fuseFlags
	var render renderFlags
	var live liveFlags
	cmd := &cobra.Command{
		Use:   "run NAME|FILE",
		Short: "Run a scenario, check its gates and write a report",
		Long: `Run a scenario, check its gates and write a report. A gate without data does not pass.
NAME is a built-in scenario ('loadgen run' without NAME lists them), FILE is your own
scenario, and - is standard input.

Without --kubeconfig or --current-cluster, the run starts its own control plane and
stops it at the end. With one of these flags, the run uses your cluster. It asks first,
creates only labelled objects, and removes them at the end. It ignores the scenario's
section controlPlane, and refuses a scenario with faults of the control plane. A lock in
the cluster prevents another run at the same time. --dry-run also checks your
permissions.

A scenario can define variants: named sets of changed fields, for example to apply the
remedy of an incident. --variant NAME runs one variant. --variant all runs the variants
one after another, each on a new control plane or on your cluster, and compares the
results. The exit code is then the worst one of the variants (from best to worst: 0, 3,
1, 2, 4).

Hooks are commands that the scenario runs on this machine with your permissions.
Before you run a scenario from someone else, read its hooks ('loadgen validate' lists
them), or disable them with --no-hooks.

Metrics: with --observe, Grafana and promtool can query metrics and built-in alerts
during the run. With --prometheus, the run does not scrape, but copies samples from
the Prometheus that scrapes your cluster. With --remote-write, the run sends all
samples to a Prometheus, Mimir or Thanos, with the label run.

Early end: --abort-on stops the load and ends the run as soon as a condition holds
(exit code 1). By default, a run on your own cluster also ends early if over half of its
requests fail for 10 s, or if etcd has used over 90% of its quota. --abort-on none
disables this default.

Several generators: --workers N divides the load among N load generators (workers).
With --workers-local, the workers are processes on this machine. With --image, they are
pods of a Job that the run removes at the end. With only --workers-listen, you start
them ('loadgen worker'). The process 'loadgen run' scrapes the components, performs the
scenario's actions (changes to objects) and checks the gates. There is no verdict (exit
code 3) if a worker is lost, is too busy, or receives a start time over 5 s late.

Inside a cluster: --render does not run the scenario. It prints manifests of a Job
that runs it in the cluster, with the required RBAC (docs/how-to/in-cluster.md).

Display: on a terminal of at least 80 columns and 24 lines, the run shows charts,
faults and phases (the periods of the scenario). The key p pauses the load, n ends the
phase, and q ends the run. --web shows the report during the run to browsers on this
machine. Gates are not checked in phases that you paused or ended early (exit code 3).

Signals: SIGINT (Ctrl-C), SIGTERM or SIGHUP ends the run early and writes a report.
After a second signal, the run stops removing objects from your cluster and lists the
remaining ones. A third signal, at least 5 s later, ends the program immediately.`,
		Example: `  loadgen run rollout-500
  loadgen run rollout-500 --set nodes.count=100 --observe=127.0.0.1:9090
  loadgen run slow-fsync --variant all
  loadgen run rollout-500 --kubeconfig ~/.kube/config --context staging --dry-run --max-rate 100/s`,
		Args:              nameOrList,
		ValidArgsFunction: completeScenario,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := errors.Join(kubeconfig.into(cmd, &o.Kubeconfig), render.into(cmd.Flags(), kubeconfig, workers.job.Image, &o), prometheus.into(&o), receiver.check(), sum.check(), labels.into(&o.Labels), fuse.into(&o.Fuse, workers.job.Image, workers.useImage() || render.on), live.check(variant)); err != nil {
				return err
			}
			o.RemoteWrite = receiver.config
			var err error
			if o.Workers, err = workers.options(cmd.Flags(), o.Kubeconfig, render.takes(workers)...); err != nil {
				return err
			}
			ctx, release, err := untilParentEnds(cmd.Context())
			if err != nil {
				return err
			}
			defer release()
			s, err := readWithHooks(cmd, args[0], o.Overrides, !o.WithoutHooks)
			if err != nil {
				return err
			}
			if err := s.DropGates(o.WithoutGates); err != nil {
				return exitcode.UsageError(err)
			}
			ui := newTUI(cmd)
			o.Scenario, o.Progress, o.Hurry = s, ui, signals.second()
			o.Confirm = func(ctx context.Context, p cluster.Plan) (bool, error) {
				return ui.confirm(ctx, cmd.InOrStdin(), p.String(), yes)
			}
			if render.on && variant == "all" {
				return exitcode.Usagef("--render can print only one variant (add --variant NAME)")
			}
			if fuse.dryRun && variant == "all" {
				return preview(cmd, o, variant, output)
			}
			switch variant {
			case "":
			case "all":
				c, dir, err := compare.Run(ctx, o)
				ui.done()
				signals.prints()
				if err != nil {
					return err
				}
				err = after(sum, showReport(cmd.OutOrStdout(), output, c.ExitCode, c, report.Comparison, dir), c, report.ComparisonSummary)
				for _, v := range c.Variants {
					printLeftovers(cmd.ErrOrStderr(), v.Left)
				}
				return err
			default:
				if o.Scenario, err = s.WithVariant(variant); err != nil {
					return exitcode.UsageError(err)
				}
				if err := compare.CheckVariant(s, variant, o.Kubeconfig); err != nil {
					return err
				}
			}
			switch {
			case render.on:
				return render.write(cmd, o, workers.job.Options)
			case fuse.dryRun:
				return preview(cmd, o, variant, output)
			}
			if err := live.begin(cmd, ui, &o, signals); err != nil {
				return err
			}
			defer live.end()
			dir, err := run.Run(ctx, o)
			ui.done()
			if dir == "" {
				return err
			}
			// Judge and report an interrupted run, too.
			res, judgeErr := judge.Judge(context.WithoutCancel(ctx), dir)
			if err = errors.Join(err, judgeErr); err != nil {
				return err
			}
			signals.prints()
			err = after(sum, showReport(cmd.OutOrStdout(), output, res.ExitCode, res, report.Terminal, dir), res, report.Summary)
			printLeftovers(cmd.ErrOrStderr(), res.Run.Left)
			return errors.Join(err, live.finish(dir, o.Hurry))
		},
	}
	flags := cmd.Flags()
	addFilenameFlag(cmd)
	addSetFlag(cmd, &o.Overrides)
	flags.StringVar(&variant, "variant", "", "run the variant with this `name`; the value \"all\" runs and compares all variants")
	flags.StringArrayVar(&o.WithoutGates, "without-gate", nil, "skip the gate with this `name`, for example a gate on metrics that your cluster lacks (repeatable)")
	addHooksFlag(cmd, &o.WithoutHooks)
	flags.StringVar(&o.ControlPlane, "controlplane", "", "controlplane `binary` (default: next to loadgen, then PATH)")
	commandline.Heading(flags, "Scenario")
	flags.StringVar(&o.Out, "out", "", "`directory` of the results (default runs/TIME-NAME)")
	labels.add(flags)
	sum.flag(cmd)
	output = commandline.AddOutput(cmd)
	live.add(flags)
	commandline.Heading(flags, "Display and results")
	fuse.addOnPlanes(flags)
	commandline.Heading(flags, "Safety")
	kubeconfig.add(flags, &o.Kubeconfig)
	fuse.addOnClusters(flags)
	flags.BoolVar(&yes, "yes", false, "create objects in your cluster without asking")
	commandline.Heading(flags, "Your cluster")
	flags.StringVar(&o.Targets, "targets", "", "YAML `file` with more scrape targets of your cluster, for example etcd (docs/how-to/own-cluster.md has the format)")
	prometheus.add(flags)
	addObserveFlags(flags, &o)
	addTraceFlags(flags, &o.Overrides, &o.Spans)
	receiver.add(flags)
	commandline.Heading(flags, "Metrics")
	workers.add(flags)
	render.add(flags)
	commandline.Heading(flags, "Several generators, or a run inside a cluster")
	return cmd
}

// nameOrList returns an error unless args contains exactly one argument, the scenario. Without arguments, it also lists
// the built-in scenarios on standard error.
func nameOrList(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		all, err := listScenarios()
		if err != nil {
			return err
		}
		w := cmd.ErrOrStderr()
		fmt.Fprintln(w, "Built-in scenarios, with the longest duration of their phases ('loadgen scenarios' describes them):")
		if err := printNames(w, all, terminal.Columns(w)); err != nil {
			return err
		}
	}
	return cobra.ExactArgs(1)(cmd, args)
}

// printLeftovers prints the objects that the run left in a user's cluster. This is the last message on the terminal. It
// is not truncated to the terminal's width.
func printLeftovers(w io.Writer, left string) {
	if left != "" {
		printError(w, errors.New(left))
	}
}

// showReport prints the result v. If the output is text, it calls `text`, with the path of the report in dir unless dir
// is empty. It returns exitCode as an error, or nil for exitcode.Pass.
func showReport[T any](w io.Writer, output *commandline.Output, exitCode int, v T, text func(io.Writer, T, report.TerminalOptions) error, dir string) error {
	return showAs(w, output, exitCode, v, func() error { return text(w, v, textOptions(w, dir)) })
}

// showAs prints the result v. If the output is text, it calls asText. It returns exitCode as an error, or nil for
// exitcode.Pass.
func showAs(w io.Writer, output *commandline.Output, exitCode int, v any, asText func() error) error {
	if err := output.Write(w, v, asText); err != nil || exitCode == exitcode.Pass {
		return err
	}
	return verdictError(exitCode)
}

func textOptions(w io.Writer, dir string) report.TerminalOptions {
	if dir != "" {
		dir = short(dir)
	}
	return report.TerminalOptions{Color: colours(w), Width: terminal.Columns(w), Dir: dir}
}

// short returns path relative to the working directory if path is below it. Otherwise it returns path.
func short(path string) string {
	here, err := os.Getwd()
	if err != nil {
		return path
	}
	if rel, err := filepath.Rel(here, path); err == nil && filepath.IsLocal(rel) {
		return rel
	}
	return path
}

func colours(w io.Writer) bool {
	return terminal.IsTerminal(w) && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
}
