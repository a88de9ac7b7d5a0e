package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/stormglass/stormglass/internal/commandline"
	"github.com/stormglass/stormglass/internal/exitcode"
	"github.com/stormglass/stormglass/loadgen/internal/ab"
	"github.com/stormglass/stormglass/loadgen/internal/capacity"
	"github.com/stormglass/stormglass/loadgen/internal/report"
	"github.com/stormglass/stormglass/loadgen/result"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

func newCapacity(signals *interrupts) *cobra.Command {
	o := capacity.RunOptions{Width: 0.15, Most: 40}
	var a, b []string
	var output *commandline.Output
	var noHooks bool
	var sum summary
	var labels labelFlag
	var fuse fuseFlags
	cmd := &cobra.Command{
		Use:   "capacity NAME|FILE",
		Short: "Search for the highest load at which all gates pass",
		Long: `Search for the highest load at which all gates of a scenario pass. The scenario's
section capacity names the field to vary, and its range:

  capacity: {field: background.writes.rate, from: 100/s, to: 10000/s}

Each trial is a run on a new control plane. A trial is good if all gates pass. The
command adds these gates to each load of requests:

  - all scheduled requests are sent
  - 99% of the scheduled requests get a 2xx answer
  - the number of requests in flight does not keep growing

A gate on request-latency (a p99) passes only if the upper 99% confidence bound of the
latency is within the gate's bound.

Until a trial is bad, each trial doubles a rate, or multiplies another field (for
example a number of nodes) by 1.2. More trials follow until the 90% confidence interval
of the capacity is at most 15% wide (--width). Finally, the search repeats the load at
the lower end of this interval: 3 of at most 5 trials must be good.

If the load generator is too busy to measure in two trials in a row, the search
continues at lower loads. If no lower load is left, the load generator reached its limit
before the cluster. The answer is then "the generator ended first".

With --b, the command searches the capacities of two configurations in alternating
trials, and compares them. --a and --b accept the values that 'loadgen ab --help'
lists, except baselines.

Ctrl-C ends the current trial; --resume DIR continues the search. A trial that
--abort-on ends early is bad. --dry-run shows what a trial at the highest load would
create and send.

Exit codes without --b:
  0  the capacity was found
  3  not found: it is out of the range, trials did not confirm it or could not be judged,
     the search did not finish, or the load generator reached its limit first
  4  the environment failed

Exit codes with --b:
  0  B's capacity is higher, or the interval of the ratio of the capacities includes 1
  1  B's capacity is lower
  3  could not tell, because a search found no capacity
  4  the environment failed`,
		Example: `  loadgen capacity capacity-writes
  loadgen capacity capacity-writes --b controlPlane.etcd.members=3
  loadgen capacity mine.yaml --resume runs/20261123-101500-mine`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: completeScenario,
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if err := errors.Join(sum.check(), labels.into(&o.Labels), fuse.into(&o.Fuse, "", false)); err != nil {
				return err
			}
			if args[0] == "-" {
				return exitcode.Usagef("the scenario cannot come from standard input, because capacity reads it again for each trial (name a file)")
			}
			if len(a) > 0 && len(b) == 0 {
				return exitcode.Usagef("--a has no effect without --b (add --b, or use --set to change the only configuration)")
			}
			ctx, release, err := untilParentEnds(cmd.Context())
			if err != nil {
				return err
			}
			defer release()
			o.Read = func(sets []string) (*scenario.Scenario, error) { return readWithHooks(cmd, args[0], sets, !noHooks) }
			ui := newTUI(cmd)
			o.Progress, o.Hurry = ui, signals.second()
			if fuse.dryRun {
				return previewCapacity(cmd, o, a, b, output)
			}
			if len(b) > 0 {
				c, err := capacitySides(ctx, o, a, b)
				ui.done()
				signals.prints()
				if err != nil {
					return err
				}
				return after(sum, showReport(cmd.OutOrStdout(), output, c.ExitCode, c, report.CapacityComparison, ""), c, fenced(report.CapacityComparison))
			}
			if o.Scenario, err = o.Read(o.Overrides); err != nil {
				return err
			}
			c, dir, err := capacity.Run(ctx, o)
			ui.done()
			signals.prints()
			if err != nil {
				return err
			}
			return after(sum, showReport(cmd.OutOrStdout(), output, c.ExitCode, c, report.Capacity, dir), c, fenced(report.Capacity))
		},
	}
	flags := cmd.Flags()
	flags.StringArrayVar(&a, "a", nil, "`value` that defines configuration A, only with --b (repeatable; default: the unchanged scenario)")
	flags.StringArrayVar(&b, "b", nil, "`value` that defines configuration B, to compare with A (repeatable)")
	addFilenameFlag(cmd)
	addSetFlag(cmd, &o.Overrides)
	labels.add(flags)
	addHooksFlag(cmd, &noHooks)
	percentVar(flags, &o.Width, "width", "end the search when the 90% confidence interval of the capacity is at most this wide")
	flags.IntVar(&o.Most, "trials", o.Most, "maximum `number` of trials, not counting the final trials that confirm the result")
	flags.StringVar(&o.Out, "out", "", "`directory` of the results (default runs/TIME-NAME)")
	flags.StringVar(&o.Resume, "resume", "", "`directory` of an interrupted search to continue")
	flags.StringVar(&o.ControlPlane, "controlplane", "", "controlplane `binary` (default: next to loadgen, then PATH)")
	fuse.addOnPlanes(flags)
	flags.Lookup("max-rate").Usage = "refuse a range whose highest load sends more than this `rate`, for example 500/s"
	cmd.MarkFlagsMutuallyExclusive("out", "resume")
	sum.flag(cmd)
	output = commandline.AddOutput(cmd)
	cmd.AddCommand(newCapacityCompare())
	return cmd
}

// searchedSides reads the scenarios of the two sides, A and B, of a capacity comparison.
func searchedSides(ctx context.Context, o capacity.RunOptions, specs ...[]string) (sides [2]ab.Side, err error) {
	for i, flag := range []string{"--a", "--b"} {
		if sides[i], err = ab.NewSide(ctx, flag, specs[i], o.Overrides, o.Read); err != nil {
			return sides, err
		}
		if sides[i].Baseline != "" {
			return sides, exitcode.Usagef("%s %s: capacity cannot use a baseline, because it has only results and no control plane to test", flag, sides[i].Baseline)
		}
	}
	return sides, nil
}

func sideOptions(o capacity.RunOptions, side ab.Side) capacity.RunOptions {
	read := o.Read
	o.Scenario, o.Overrides, o.ControlPlane, o.Out, o.Resume = side.Scenario, side.Set, cmp.Or(side.ControlPlane, o.ControlPlane), "", ""
	o.Read = func(sets []string) (*scenario.Scenario, error) {
		sc, err := read(sets)
		if err != nil || side.Variant == "" {
			return sc, err
		}
		return sc.WithVariant(side.Variant)
	}
	return o
}

// capacitySides compares the capacities of two sides with two searches that alternate their trials. If a side is a Git
// revision, it first builds the programs of that revision.
func capacitySides(ctx context.Context, o capacity.RunOptions, specs ...[]string) (c result.CapacityComparison, err error) {
	sides, err := searchedSides(ctx, o, specs...)
	if err != nil {
		return c, err
	}
	var searches [2]capacity.RunOptions
	for i, side := range sides {
		searches[i] = sideOptions(o, side)
		searches[i].Build = func(ctx context.Context) error { return side.Build(ctx, o.Progress.Step) }
	}
	c, _, err = capacity.RunInTurns(ctx, searches, o.Out, o.Resume)
	return c, err
}

func newCapacityCompare() *cobra.Command {
	var output *commandline.Output
	var sum summary
	cmd := &cobra.Command{
		Use:   "compare A B",
		Short: "Compare the capacities that two earlier searches found",
		Long: `Compare two searches of the same field. A and B are their directories. The output is
the ratio of B's capacity to A's with a 90% confidence interval, and the differences
in settings, versions and host.

Exit codes:
  0  B's capacity is higher, or the interval includes 1
  1  B's capacity is lower
  3  could not tell, because a search found no capacity`,
		Example: `  loadgen capacity compare runs/one-member runs/three-members`,
		Args:    cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := sum.check(); err != nil {
				return err
			}
			c, err := capacity.Compare([2]string{args[0], args[1]})
			if err != nil {
				return err
			}
			return after(sum, showReport(cmd.OutOrStdout(), output, c.ExitCode, c, report.CapacityComparison, ""), c, fenced(report.CapacityComparison))
		},
	}
	sum.flag(cmd)
	output = commandline.AddOutput(cmd)
	return cmd
}

// fenced returns a function that writes the terminal output of `text` as a Markdown code block.
func fenced[T any](text func(io.Writer, T, report.TerminalOptions) error) func(io.Writer, T) error {
	return func(w io.Writer, v T) error {
		if _, err := fmt.Fprint(w, "```\n"); err != nil {
			return err
		}
		if err := text(w, v, report.TerminalOptions{Width: 120}); err != nil {
			return err
		}
		_, err := fmt.Fprint(w, "```\n\n")
		return err
	}
}
