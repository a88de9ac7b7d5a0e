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
	"github.com/stormglass/stormglass/loadgen/result"
)

func newRun(signals *interrupts) *cobra.Command {
	var o run.Options
	var yes bool
	var variant string
	var output *commandline.Output
	var sum summary
	var prometheus prometheusFlags
	var receiver remoteWriteFlags
	var workers workerFlags
	var kubeconfig kubeconfigFlags
	var fuse fuseFlags
	var render renderFlags
	var live liveFlags
	cmd := &cobra.Command{
		Use:   "run NAME|FILE",
		Short: "Run a scenario, judge it and write the report",
		Long: `Run a scenario, judge it and write the report. NAME is a built-in scenario (without
NAME, the command lists them), FILE is your own scenario, - is standard input.

Without --kubeconfig a control plane is started for the run and stopped after it.
With --kubeconfig the scenario runs on that cluster: it creates only labelled
objects, after asking, and removes them at the end. The scenario's controlPlane
section is then not applied (a note lists its settings), and a scenario with control
plane faults is refused.

A scenario with variants describes an incident and its remedy. --variant all runs
each variant in turn on its own control plane, and prints the figures of the scenario's
compare section next to each other. The worst run determines the exit code. --variant
NAME runs one variant. Without --variant the scenario runs unchanged.

Hooks are commands that run on this machine with your permissions. Before you run a
scenario from someone else, read them (validate lists them), or leave them out with
--no-hooks.

With --observe, Grafana, promtool and other Prometheus clients can query the run while
it is active; the built-in alerts are evaluated over it. With --prometheus, the run does
not scrape: it copies the metrics from the Prometheus that already scrapes your cluster.
Metrics that it lacks count as no data.

With --remote-write, the samples of the run, including the generator's own, are sent
to a Prometheus, Mimir or Thanos during the run, with the label run. The series
stormglass_phase_active and stormglass_fault_active show phases and faults. Samples that
the receiver misses while it is down are sent later. The load never waits for the
receiver. When the run ends, it waits at most 30 s until the receiver has all samples.

--abort-on stops all load as soon as a condition holds and ends the run, which then
counts as failed; on your own cluster some conditions are set by default. With
--max-rate a scenario that sends more than this rate is refused. --dry-run shows what a
run would do and whether it is permitted, and does nothing. On your own cluster a run
holds a lock, so that no other run starts there, and --cleanup-job creates a Job that
cleans up even if this machine is lost.

With --workers N the loads are divided among N generators, which join over TLS; this
process still scrapes, performs the actions and judges. With --image the generators are
pods of a Job in your cluster, or in the cluster of --workers-kubeconfig; the Job is
removed at the end. If a worker is lost, late or saturated, the run cannot be judged
(exit 3).

With --render the run does not start: the command prints manifests that run it inside the
cluster, as a Job, with the RBAC that this scenario needs (docs/how-to/in-cluster.md).

On a terminal of at least 80 by 24, a page shows charts, phases and faults, and reacts
to keys: p pauses the load, n ends the phase, q ends the run. --plain prints lines
instead. --web serves the growing report to browsers on this machine, with buttons to
pause the load and to end the phase. Figures of a phase that was paused or ended early
are not judged (exit 3).

Ctrl-C (SIGINT, SIGTERM, SIGHUP) shuts the run down cleanly and still writes the report,
marked interrupted; if there are variants, the finished variants are compared. After a
second signal the run does not wait: objects that are not yet removed from your cluster
stay there and are listed, and the report is still written. A third signal, at least
5 s later, ends the program immediately.`,
		Example: `  loadgen run rollout-500
  loadgen run watch-flood --set phases.flood.load.crowd.count=500 --out runs/flood
  loadgen run rollout-500 --observe=127.0.0.1:9090
  loadgen run rollout-500 --web
  loadgen run rollout-500 --kubeconfig ~/.kube/config --context staging --yes
  loadgen run api-mix --kubeconfig ~/.kube/config --prometheus http://127.0.0.1:9090
  loadgen run rollout-500 --kubeconfig ~/.kube/config --dry-run --max-rate 100/s
  loadgen run api-mix --kubeconfig ~/.kube/config --abort-on apiserver-latency=2s,for=10s --abort-on alert=EtcdNoLeader
  loadgen run api-mix --kubeconfig ~/.kube/config --workers 4 --image registry.example.com/loadgen:v1
  loadgen run api-mix --workers 4 --image registry.example.com/loadgen:v1 --render | kubectl apply -f -
  loadgen run mine.yaml --variant all`,
		Args:              nameOrList,
		ValidArgsFunction: completeScenario,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := errors.Join(kubeconfig.into(cmd, &o.Kubeconfig), render.into(cmd.Flags(), kubeconfig, workers.job.Image, &o), prometheus.into(&o), receiver.check(), sum.check(), fuse.into(&o.Fuse, workers.job.Image, workers.useImage() || render.on), live.check(variant)); err != nil {
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
				err = after(sum, showComparison(cmd.OutOrStdout(), dir, c, output), c, report.ComparisonSummary)
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
			// An interrupted run is still judged and reported.
			res, judgeErr := judge.Judge(context.WithoutCancel(ctx), dir)
			if err = errors.Join(err, judgeErr); err != nil {
				return err
			}
			signals.prints()
			err = after(sum, show(cmd.OutOrStdout(), dir, res, output), res, report.Summary)
			printLeftovers(cmd.ErrOrStderr(), res.Run.Left)
			return errors.Join(err, live.finish(dir, o.Hurry))
		},
	}
	flags := cmd.Flags()
	addFilenameFlag(cmd)
	addSetFlag(cmd, &o.Overrides)
	flags.StringVar(&variant, "variant", "", "run only the scenario's variant with this `name`; with all, run and compare all variants")
	flags.StringArrayVar(&o.WithoutGates, "without-gate", nil, "leave out the gate with this `name`, for example a gate on metrics that your cluster lacks (repeatable)")
	addHooksFlag(cmd, &o.WithoutHooks)
	flags.StringVar(&o.ControlPlane, "controlplane", "", "the controlplane `binary` (default: next to loadgen, then PATH)")
	commandline.Heading(flags, "Scenario")
	flags.StringVar(&o.Out, "out", "", "the run's `directory` (default runs/TIME-NAME)")
	sum.flag(cmd)
	output = commandline.AddOutput(cmd)
	live.add(flags)
	commandline.Heading(flags, "Progress and result")
	fuse.addOnPlanes(flags)
	commandline.Heading(flags, "Limits")
	kubeconfig.add(flags, &o.Kubeconfig)
	fuse.addOnClusters(flags)
	flags.BoolVar(&yes, "yes", false, "do not ask before creating objects in your cluster")
	commandline.Heading(flags, "Your cluster")
	flags.StringVar(&o.Targets, "targets", "", "`file` with further scrape targets of your cluster (etcd, scheduler, controller manager)")
	prometheus.add(flags)
	addObserveFlags(flags, &o)
	receiver.add(flags)
	commandline.Heading(flags, "Metrics")
	workers.add(flags)
	render.add(flags)
	commandline.Heading(flags, "Several generators, and runs inside a cluster")
	return cmd
}

// nameOrList returns an error unless args contain exactly the name of a scenario. Without arguments, it also lists the
// built-in scenarios on standard error.
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

// printLeftovers prints the objects that are left in a user's cluster. This is the last message on the terminal, and it
// is not truncated to the terminal's width.
func printLeftovers(w io.Writer, left string) {
	if left != "" {
		printError(w, errors.New(left))
	}
}

// show prints a result. It returns the exit code of the verdict as an error. If dir is empty, there is no report to name.
func show(w io.Writer, dir string, res result.Result, output *commandline.Output) error {
	return showAs(w, output, res.ExitCode, res, func() error {
		return report.Terminal(w, res, textOptions(w, dir))
	})
}

// showAs prints the result v, with asText if the output is text. It returns exitCode as an error, or nil for ExitPass.
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

func showComparison(w io.Writer, dir string, c result.Comparison, output *commandline.Output) error {
	return showAs(w, output, c.ExitCode, c, func() error {
		return report.Comparison(w, c, textOptions(w, dir))
	})
}

// short returns path relative to the current directory if path is below it. Otherwise it returns path.
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
