package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/stormglass/stormglass/internal/commandline"
	"github.com/stormglass/stormglass/internal/exitcode"
	"github.com/stormglass/stormglass/internal/terminal"
	"github.com/stormglass/stormglass/loadgen/internal/report"
	"github.com/stormglass/stormglass/loadgen/internal/run"
	"github.com/stormglass/stormglass/loadgen/internal/rundir"
	"github.com/stormglass/stormglass/loadgen/internal/scrape/promimport"
	"github.com/stormglass/stormglass/loadgen/result"
)

func newDiagnose() *cobra.Command {
	var o diagnoseOptions
	var prometheus prometheusFlags
	var output *commandline.Output
	var live bool
	var dir string
	cmd := &cobra.Command{
		Use:   "diagnose DIR | --live | --prometheus URL",
		Short: "Find the cause of a problem in metrics",
		Long: `Find the cause of a problem in metrics, for example a slow disk, a webhook, a network
link, a process that was killed or hangs, or a client-side rate limit.

The command looks for symptoms, for example slow or failed requests, in the diagnosed
time (--period). It compares the metrics with fixed bounds and with the comparison
period (--comparison-period), a time without the problem. A failed gate of a run is
also a symptom. The command does not use the run's record of injected faults.

For a recorded run, the comparison period is the first quarter of the time of its
phases, but at most a minute. The rest is diagnosed. With --prometheus, the last two
minutes are diagnosed, and the comparison period is the hour before. --comparison-period
and --period change these times. Their value is the name of a phase of the run, or
FROM,TO in one of these forms:

  0s,30s                                      time since the first scrape
  14:00:00,14:05:00                           time of day in UTC
  2026-11-21T14:00:00Z,2026-11-21T14:05:00Z   timestamps

--live repeats the diagnosis of the latest metrics until Ctrl-C, and prints each
change. It reads the metrics of a running 'loadgen observe', or, with --prometheus, of
another server, for example 'loadgen run --observe'.

Exit codes:
  0  the cluster is healthy
  1  a cause was found
  3  a symptom has no known cause, or there is not enough data`,
		Example: `  loadgen diagnose runs/20261121-101500-slow-fsync --comparison-period steady --period slow
  loadgen diagnose --prometheus http://127.0.0.1:9090 --period 2026-11-21T14:00:00Z,2026-11-21T14:05:00Z
  loadgen diagnose --live`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := prometheus.alone(); err != nil {
				return err
			}
			url := prometheus.config.URL
			switch {
			case len(args) == 1 && url != "":
				return exitcode.Usagef("--prometheus does not apply to a recorded run, which contains its metrics (leave out the directory or the flag)")
			case len(args) == 0 && url == "" && !live:
				return exitcode.Usagef("the source of metrics is missing (name the directory of a run, or add --live or --prometheus URL)")
			case live && len(args) == 1:
				return exitcode.Usagef("--live does not apply to a recorded run, which has ended (leave out the directory or the flag)")
			case live && (o.Calm != "" || o.Under != ""):
				return exitcode.Usagef("--comparison-period and --period have no effect with --live, which chooses the times itself (leave them out)")
			case o.Reference != "" && (len(args) == 0 || o.Calm != ""):
				return exitcode.Usagef("--reference replaces --comparison-period and applies only to a recorded run (name the directory of the run, and leave out --comparison-period)")
			case o.Step != 0 && (o.Step < minStep || o.Step > maxStep):
				return exitcode.Usagef("--step %s is out of bounds (from %s to %s)", o.Step, minStep, maxStep)
			case len(args) == 1 && rundir.IsComparison(args[0]):
				return exitcode.UsageError(errors.New(args[0] + " contains the runs of several variants (name the subdirectory of one variant)"))
			}
			diagnose := prometheusDiagnosis(prometheus.config, o)
			switch {
			case url == "" && live:
				var err error
				if diagnose, err = diagnoseObserved(func() (string, error) { return run.ObserverURL(dir) }, prometheus.config, o); err != nil {
					return err
				}
			case url == "":
				diagnose = func(ctx context.Context) (result.Diagnosis, error) { return diagnoseRun(ctx, args[0], o) }
			}
			if live {
				show := func(d result.Diagnosis) error {
					return output.WriteEach(cmd.OutOrStdout(), d, func() error { return report.Diagnosis(cmd.OutOrStdout(), d, textOptions(cmd.OutOrStdout(), "")) })
				}
				return follow(cmd.Context(), liveEvery, diagnose, show, func(err error) {
					fmt.Fprintf(cmd.ErrOrStderr(), "loadgen: %s; trying again every %s\n", terminal.Clean(err.Error()), liveEvery)
				})
			}
			d, err := diagnose(cmd.Context())
			if err != nil {
				return err
			}
			return showReport(cmd.OutOrStdout(), output, exitOf[d.Answer], d, report.Diagnosis, "")
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&o.Calm, "comparison-period", "", "comparison period without the problem: `FROM,TO` or a phase")
	flags.StringVar(&o.Reference, "reference", "", "`directory` of a healthy run to compare with, instead of a comparison period")
	flags.StringVar(&o.Under, "period", "", "time to diagnose: `FROM,TO` or a phase")
	commandline.OldName(cmd, "calm", "comparison-period")
	commandline.OldName(cmd, "under", "period")
	flags.DurationVar(&o.Step, "step", 0, "`time` between scrapes (default: found in the metrics)")
	flags.BoolVar(&live, "live", false, "repeat the diagnosis until Ctrl-C")
	addDirFlag(cmd, &dir, "for --live, `directory` of the control plane that 'loadgen observe' reads")
	prometheus.add(flags)
	flags.Lookup("prometheus").Usage = "diagnose the samples of the Prometheus at this `URL`, not a recorded run"
	output = commandline.AddOutput(cmd)
	return cmd
}

// diagnoseObserved returns a function that diagnoses the metrics of an observer. If the observer is unreachable, that
// function calls `address` again, because a restarted observer may have another address.
func diagnoseObserved(address func() (string, error), p promimport.Config, o diagnoseOptions) (func(context.Context) (result.Diagnosis, error), error) {
	var err error
	if p.URL, err = address(); err != nil {
		return nil, err
	}
	p.Ours = true
	diagnose := prometheusDiagnosis(p, o)
	return func(ctx context.Context) (result.Diagnosis, error) {
		d, err := diagnose(ctx)
		if exitcode.Of(err) != exitcode.Environment {
			return d, err
		}
		if next, unread := address(); unread == nil && next != "" && next != p.URL {
			p.URL = next
			diagnose = prometheusDiagnosis(p, o)
			return diagnose(ctx)
		}
		return d, err
	}, nil
}

const minStep, maxStep = 100 * time.Millisecond, time.Hour

var exitOf = map[string]int{result.Healthy: exitcode.Pass, result.Diagnosed: exitcode.Fail, result.Unknown: exitcode.NoData, result.CannotTell: exitcode.NoData}

// liveEvery is the interval between two diagnoses in a live diagnosis.
const liveEvery = 15 * time.Second

// follow calls `diagnose` at the interval `every` until ctx ends. It shows each diagnosis that differs from the
// previous one, and passes each new error to `failed`. Only a usage error in the first diagnosis ends follow. A later
// usage error comes from a changed file or Prometheus server.
func follow(ctx context.Context, every time.Duration, diagnose func(context.Context) (result.Diagnosis, error), show func(result.Diagnosis) error, failed func(error)) error {
	ticks := time.NewTicker(every)
	defer ticks.Stop()
	shown, answered := "nothing", false
	for {
		d, err := diagnose(ctx)
		switch {
		case ctx.Err() != nil:
			return nil
		case exitcode.Of(err) == exitcode.Usage && !answered:
			return err
		case err != nil:
			if now := err.Error(); now != shown {
				failed(err)
				shown = now
			}
		}
		answered = answered || err == nil
		if now := d.Gist(); err == nil && now != shown {
			if err := show(d); err != nil {
				return err
			}
			shown = now
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticks.C:
		}
	}
}
