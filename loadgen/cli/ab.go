package cli

import (
	"errors"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/stormglass/stormglass/internal/commandline"
	"github.com/stormglass/stormglass/internal/exitcode"
	"github.com/stormglass/stormglass/loadgen/internal/ab"
	"github.com/stormglass/stormglass/loadgen/internal/judge/paired"
	"github.com/stormglass/stormglass/loadgen/internal/report"
	"github.com/stormglass/stormglass/loadgen/result"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

func newAB(signals *interrupts) *cobra.Command {
	o := ab.Options{Plan: paired.Default()}
	var a, b []string
	var against string
	var output *commandline.Output
	var sum summary
	var labels labelFlag
	var noHooks bool
	var fuse fuseFlags
	var pairs, alphas []string
	cmd := &cobra.Command{
		Use:   "ab NAME|FILE",
		Short: "Decide by repeated runs whether configuration B is worse than A",
		Long: `Run a scenario with two configurations, A and B, and decide whether B is worse.

--a and --b define the configurations. The default is the unchanged scenario. Each value
has one of these forms; to combine several values, repeat the flag:

  bin/controlplane           a controlplane binary
  plane.yaml                 a config file that replaces the scenario's section controlPlane
  nodes.count=50             a field of the scenario, as with --set
  WatchList=false            a feature gate of all components that have it
  variant=NAME               a variant that the scenario defines
  rev=REVISION               a controlplane binary that ab builds from this git revision;
                             run ab in a checkout of Stormglass
  baselines/main             a baseline, that is a directory of saved runs (only for --a)

A pair is a run of A and a run of B on new control planes, in random order, with the
same random seed. The first pair only warms up the machine. If the machine was busy
during a pair, ab discards and repeats this pair (--discard-other, --discard-io,
--discard-steal).

After 6, 9 and 12 pairs (--looks), a paired t-test of each metric gives the first of
these answers that applies:

  regressed       B is significantly worse (--alpha), on average by at least 5% (--change)
  improved        the same, but better
  not regressed   the upper 95% bound (--confidence) of the change is below 10% (--margin)
  could not tell  no other answer after the last test

With a baseline as --a, there are no pairs: ab runs only B, and compares its runs with
the saved runs by Welch's t-test. --looks and --discard-* then apply to the runs of B.

The scenario's section compare lists the metrics. By default, the metrics that vary
least between identical runs (at most five) decide. If their answers differ, the first
of this list counts: regressed, could not tell, improved, not regressed.

Ctrl-C ends the current run and keeps the finished pairs; --resume DIR continues with
them. If --abort-on ends a run early, the comparison ends too (exit code 3). --dry-run
shows what a run of A and a run of B would create and send, and builds no revision.

Exit codes:
  0  improved or not regressed
  1  regressed
  3  could not tell, or the comparison ended early
  4  the environment failed`,
		Example: `  loadgen ab ci-gate --a rev=main --b rev=HEAD
  loadgen ab ci-gate --b controlPlane.controllerManager.qps=18 --metric rollout-time
  loadgen ab ci-gate --b WatchList=false --resume runs/20261123-101500-ci-gate-ab`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: completeScenario,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := errors.Join(sum.check(), labels.into(&o.Labels), looks(&o.Plan, pairs, alphas), fuse.into(&o.Fuse, "", false)); err != nil {
				return err
			}
			if against != "" {
				a = append(a, against)
			}
			if args[0] == "-" {
				return exitcode.Usagef("the scenario cannot come from standard input, because ab reads it once for A and once for B (name a file)")
			}
			ctx, release, err := untilParentEnds(cmd.Context())
			if err != nil {
				return err
			}
			defer release()
			if fuse.dryRun {
				a, b = withoutRevisions(a), withoutRevisions(b)
			}
			ui := newTUI(cmd)
			read := func(sets []string) (*scenario.Scenario, error) { return readWithHooks(cmd, args[0], sets, !noHooks) }
			if o.A, err = ab.NewSide(ctx, "--a", a, o.Overrides, read); err != nil {
				return err
			}
			if o.B, err = ab.NewSide(ctx, "--b", b, o.Overrides, read); err != nil {
				return err
			}
			o.Progress, o.Hurry = ui, signals.second()
			if fuse.dryRun {
				return previewAB(cmd, o, output)
			}
			c, dir, err := ab.Run(ctx, o)
			ui.done()
			signals.prints()
			if err != nil {
				return err
			}
			return after(sum, showReport(cmd.OutOrStdout(), output, c.ExitCode, c, report.AB, dir), c, report.ABSummary)
		},
	}
	flags := cmd.Flags()
	flags.StringArrayVar(&a, "a", nil, "`value` (see above) that defines configuration A (repeatable; default: the unchanged scenario)")
	flags.StringArrayVar(&b, "b", nil, "`value` (see above) that defines configuration B (repeatable; default: the unchanged scenario)")
	flags.StringVar(&against, "against", "", "`directory` of a baseline, the same as --a DIRECTORY")
	addFilenameFlag(cmd)
	addSetFlag(cmd, &o.Overrides)
	labels.add(flags)
	addHooksFlag(cmd, &noHooks)
	flags.StringArrayVar(&o.Gated, "metric", nil, "`name` of a metric in the section compare that decides; the value \"all\" selects all metrics (repeatable; default: the metrics that vary least)")
	flags.StringSliceVar(&pairs, "looks", []string{"6", "9", "12"}, "numbers of `pairs` after which the metrics are tested, separated by commas")
	flags.Lookup("looks").DefValue = "6,9,12"
	flags.StringSliceVar(&alphas, "alpha", []string{"0.3%", "0.3%", "0.4%"}, "`probabilities` of a false \"regressed\" for one metric, separated by commas: one for each number in --looks")
	flags.Lookup("alpha").DefValue = "0.3%,0.3%,0.4%"
	percentVar(flags, &o.Plan.Change, "change", "smallest change that counts as regressed or improved")
	percentVar(flags, &o.Plan.Margin, "margin", "\"not regressed\" requires an upper bound of the change below this")
	percentVar(flags, &o.Plan.Confidence, "confidence", "confidence level of the one-sided bounds of a change")
	flags.IntVar(&o.Plan.Figures, "max-metrics", o.Plan.Figures, "maximum `number` of metrics that decide if --metric is not set")
	percentVar(flags, &o.Plan.Spread, "spread", "without --metric, only metrics whose spread (in the section compare) is at most this decide")
	commandline.OldName(cmd, "figure", "metric")
	commandline.OldName(cmd, "most-figures", "max-metrics")
	discardFlags(cmd, &o.Plan.Throw, "discard a pair")
	flags.StringVar(&o.Out, "out", "", "`directory` of the results (default runs/TIME-NAME-ab)")
	flags.StringVar(&o.Resume, "resume", "", "`directory` of an interrupted comparison to continue")
	flags.StringVar(&o.ControlPlane, "controlplane", "", "controlplane `binary`, unless --a or --b names one (default: next to loadgen, then PATH)")
	fuse.addOnPlanes(flags)
	cmd.MarkFlagsMutuallyExclusive("out", "resume")
	sum.flag(cmd)
	output = commandline.AddOutput(cmd)
	return cmd
}

// looks sets the interim analyses (looks) of the plan p from the values of --looks and --alpha.
func looks(p *result.Plan, pairs, alphas []string) error {
	if len(pairs) != len(alphas) {
		return exitcode.Usagef("--looks has %d numbers, but --alpha has %d (write one probability for each number of pairs)", len(pairs), len(alphas))
	}
	p.Looks = nil
	for i, text := range pairs {
		n, err := strconv.Atoi(text)
		if err != nil {
			return exitcode.Usagef("--looks %q is not a number of pairs", text)
		}
		var alpha percent
		if err := alpha.Set(alphas[i]); err != nil {
			return exitcode.Usagef("--alpha %q: %w", alphas[i], err)
		}
		p.Looks = append(p.Looks, result.Look{Pairs: n, Alpha: float64(alpha)})
	}
	return nil
}

// discardFlags adds the flags that limit the work of other programs on the machine during a run. `does` is the part of
// the help text that says what happens above the limit.
func discardFlags(cmd *cobra.Command, throw *result.Throw, does string) {
	flags := cmd.Flags()
	percentVar(flags, &throw.Steal, "discard-steal", does+" if the hypervisor took more than this percentage of CPU time")
	percentVar(flags, &throw.Other, "discard-other", does+" if other processes used more than this percentage of CPU time")
	percentVar(flags, &throw.IO, "discard-io", does+" if processes waited for a disk for more than this percentage of the time")
	for _, load := range []string{"steal", "other", "io"} {
		commandline.OldName(cmd, "throw-"+load, "discard-"+load)
	}
}
