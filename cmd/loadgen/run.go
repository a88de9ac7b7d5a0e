package main

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/stormglass/stormglass/internal/commandline"
	"github.com/stormglass/stormglass/loadgen"
	"github.com/stormglass/stormglass/loadgen/result"
)

func newRun(signals *interrupts) *cobra.Command {
	var o loadgen.Options
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
		Short: "Run a scenario, judge it, write the report",
		Long: `Run a scenario, judge it and write the report. NAME is a built-in scenario
(see 'loadgen scenarios'), FILE one of your own, - one on standard input.

Without --kubeconfig a control plane is brought up for the run and stopped
after it. With --kubeconfig the scenario runs against that cluster: it creates
only labelled objects, after asking, and removes them at the end; the
scenario's controlPlane section is then only compared, not applied, and a
scenario with faults of the control plane is refused.

A scenario with variants is an incident and its remedy. --variant all runs them
one after another, each on a separate control plane, and sets what the
scenario compares side by side; the exit code is the worst of all. --variant
NAME runs one. Without it the scenario runs unchanged.

Hooks of the scenario are commands that run on this machine as you: read them in a
file from elsewhere (validate lists them), or leave them out by --no-hooks.

With --observe the run can be watched while it is active: by Grafana, promtool
and other clients of a Prometheus, with the alerts that ship evaluated over it.
With --prometheus the metrics of your cluster are not scraped but copied from the
Prometheus that scrapes them already; what it does not give is no data.

With --remote-write the run's samples, the generator's own among them, are sent on to
a Prometheus, Mimir or Thanos during the run, with the label run. Phases and faults
are the series stormglass_phase_active and stormglass_fault_active. What the receiver
misses while it is away is read from the run's directory and sent later; the load
never waits for it, the end of the run for 30 s at most.

--abort-on stops all load as soon as a condition holds and ends the run, which has
failed then; on your own cluster some are on. --max-rate refuses a scenario that
sends more. --dry-run says what a run would do, and whether it may, and does nothing.
On your own cluster a run holds a lock, so that no other run starts there, and
--cleanup-job makes a Job there that outlives this machine.

With --workers N the loads are divided among N generators, which join over TLS; the
run itself scrapes, acts and judges. With --image they are the pods of a Job in your
cluster, or in the one named by --workers-kubeconfig; the Job is removed at the end.
A worker that is lost, late or saturated makes the run one that could not be judged
(exit 3).

With --render the run is not begun: manifests are printed that run it from inside the
cluster, as a Job, with the RBAC that this scenario needs (docs/how-to/in-cluster.md).

On a terminal of 80 by 24 or more a page shows charts, phases and faults, and takes
keys: p pauses load, n ends the phase, q ends the run. --plain shows lines instead.
--web serves the report as it grows, with the same buttons, to browsers of this
machine. Figures of a phase that was paused or ended early are not judged (exit 3).

Ctrl-C (SIGINT, SIGTERM, SIGHUP) ends the run in order and still writes the
report, marked interrupted; of variants, those that have run are compared. A
second signal does not wait: what is not yet removed from your cluster stays and
is reported, the report is still written. A third, 5 s later or more, ends at once.`,
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
		Args:              cobra.ExactArgs(1),
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
				return loadgen.Usage(err)
			}
			ui := newTUI(cmd)
			o.Scenario, o.Progress, o.Hurry = s, ui, signals.second()
			o.Confirm = func(ctx context.Context, p loadgen.Plan) (bool, error) {
				return ui.confirm(ctx, cmd.InOrStdin(), p.String(), yes)
			}
			if render.on && variant == "all" {
				return loadgen.Usage(errors.New("--render makes the objects of one variant (name it by --variant NAME)"))
			}
			if fuse.dryRun && variant == "all" {
				return preview(cmd, o, variant, output)
			}
			switch variant {
			case "":
			case "all":
				c, dir, err := loadgen.RunVariants(ctx, o)
				ui.done()
				if err != nil {
					return err
				}
				err = after(sum, showComparison(cmd.OutOrStdout(), dir, c, output), c, loadgen.WriteComparisonMarkdown)
				for _, v := range c.Variants {
					printLeftovers(cmd.ErrOrStderr(), v.Left)
				}
				return err
			default:
				if o.Scenario, err = s.WithVariant(variant); err != nil {
					return loadgen.Usage(err)
				}
				if err := loadgen.CheckVariant(s, variant, o.Kubeconfig); err != nil {
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
			dir, err := loadgen.Run(ctx, o)
			ui.done()
			if dir == "" {
				return err
			}
			// An interrupted run is still judged and reported.
			res, judgeErr := loadgen.Judge(context.WithoutCancel(ctx), dir)
			if err = errors.Join(err, judgeErr); err != nil {
				return err
			}
			err = after(sum, show(cmd.OutOrStdout(), dir, res, output), res, loadgen.WriteMarkdown)
			printLeftovers(cmd.ErrOrStderr(), res.Run.Left)
			return errors.Join(err, live.finish(dir, o.Hurry))
		},
	}
	flags := cmd.Flags()
	addFilenameFlag(cmd)
	addSetFlag(cmd, &o.Overrides)
	flags.StringArrayVar(&o.WithoutGates, "without-gate", nil, "leave out the gate of this `name`, such as one on metrics your cluster does not offer (repeatable)")
	addHooksFlag(cmd, &o.WithoutHooks)
	flags.StringVar(&variant, "variant", "", "run the scenario's variant of this `name`, or all of them side by side")
	flags.StringVar(&o.Out, "out", "", "the run's `directory` (default runs/TIME-NAME)")
	kubeconfig.add(flags, &o.Kubeconfig)
	flags.StringVar(&o.Targets, "targets", "", "`file` with further scrape targets of your cluster (etcd, scheduler, controller manager)")
	flags.StringVar(&o.ControlPlane, "controlplane", "", "the controlplane `binary` (default: next to loadgen, then PATH)")
	prometheus.add(flags)
	addObserveFlags(flags, &o)
	live.add(flags)
	receiver.add(flags)
	fuse.add(flags)
	workers.add(flags)
	render.add(flags)
	flags.BoolVar(&yes, "yes", false, "do not ask before creating objects in your cluster")
	sum.flag(cmd)
	output = commandline.AddOutput(cmd)
	return cmd
}

// printLeftovers prints the objects left in a user's cluster: the last message on the
// terminal, and never truncated to its width.
func printLeftovers(w io.Writer, left string) {
	if left != "" {
		printError(w, errors.New(left))
	}
}

// show prints the result; the exit code is the verdict's. An empty dir means that
// there is no report.
func show(w io.Writer, dir string, res result.Result, output *commandline.Output) error {
	return showAs(w, output, res.ExitCode, res, func() error {
		return loadgen.WriteText(w, res, textOptions(w, dir))
	})
}

// showAs prints a result v, as text by asText, and ends with its exit code.
func showAs(w io.Writer, output *commandline.Output, exitCode int, v any, asText func() error) error {
	if err := output.Write(w, v, asText); err != nil || exitCode == loadgen.ExitPass {
		return err
	}
	return verdictError(exitCode)
}

func textOptions(w io.Writer, dir string) loadgen.TextOptions {
	if dir != "" {
		dir = short(dir)
	}
	return loadgen.TextOptions{Color: colours(w), Width: width(w), Dir: dir}
}

func showComparison(w io.Writer, dir string, c result.Comparison, output *commandline.Output) error {
	return showAs(w, output, c.ExitCode, c, func() error {
		return loadgen.WriteComparisonText(w, c, textOptions(w, dir))
	})
}

// short is a path as a person in the present directory would write it.
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
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd())) && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
}

func width(w io.Writer) int {
	if f, ok := w.(*os.File); ok {
		if columns, _, err := term.GetSize(int(f.Fd())); err == nil {
			return columns
		}
	}
	return 100
}
