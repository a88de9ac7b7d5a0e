package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/rest"

	"github.com/stormglass/stormglass/internal/exitcode"
	"github.com/stormglass/stormglass/internal/terminal"
	"github.com/stormglass/stormglass/loadgen/internal/cluster"
	"github.com/stormglass/stormglass/loadgen/internal/scratch"
)

func newCleanup() *cobra.Command {
	var c cleanup
	var kubeconfig kubeconfigFlags
	var at cluster.Kubeconfig
	cmd := &cobra.Command{
		Use:   "cleanup [DIR]",
		Short: "Remove objects that runs left in your cluster",
		Long: `Remove the objects that interrupted or killed runs left in your cluster: namespaces,
simulated nodes and their Leases, certificate requests and RBAC objects. The command
finds them by their labels. It needs --kubeconfig or --current-cluster.

An active run renews a lock (a Lease) in the cluster, except with --no-lock. The command
skips a run that renewed its lock within the last minute, unless --run or DIR names the
run.

With DIR, the directory of a run, only the objects of this run are removed. DIR lists
its nodes and cluster-scoped objects, so the command finds these objects even without
their labels.

Every run, even with --no-lock, also stores a deadline in the cluster, and extends it
until the run ends. With --expired, the command removes only the objects of runs that do
not renew a lock and whose deadline has passed. 'loadgen cleanup render' prints a
CronJob that does this inside the cluster.

Failed removals are retried for 5 minutes, or until Ctrl-C. The command also deletes
token files of killed runs from this machine's temporary directory.`,
		Example: `  loadgen cleanup --kubeconfig ~/.kube/config --dry-run
  loadgen cleanup --kubeconfig ~/.kube/config --run 3f9a1c20b4 --yes
  loadgen cleanup --kubeconfig ~/.kube/config runs/20260102-150405-rollout-500`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if at.Files == "" && !kubeconfig.current {
				return exitcode.Usagef("--kubeconfig is missing (a bundled control plane needs no cleanup: it is deleted at the end of its run)")
			}
			if err := errors.Join(kubeconfig.into(cmd, &at), c.check(), c.read(args)); err != nil {
				return err
			}
			c.cmd, c.ui = cmd, newTUI(cmd)
			if !c.dryRun {
				for _, path := range scratch.Sweep() {
					c.ui.Step(fmt.Sprintf("removed %s, which a killed loadgen left behind on this machine", path))
				}
			}
			cfg, name, err := cluster.Reach(cmd.Context(), at, c.ui.Step)
			if err != nil {
				return errors.Join(err, cmd.Context().Err())
			}
			c.at = fmt.Sprintf("cluster %s (%s)", name, cfg.Host)
			if c.expired {
				return c.removeExpired(cmd.Context(), cfg)
			}
			return c.removeAll(cmd.Context(), cfg)
		},
	}
	flags := cmd.Flags()
	kubeconfig.add(flags, &at)
	flags.Lookup("kubeconfig").Usage = "kubeconfig `file` of your cluster"
	flags.StringVar(&c.runID, "run", "", "remove only the objects of the run with this `ID` (default: all runs)")
	flags.BoolVar(&c.expired, "expired", false, "remove only the objects of runs whose deadline has passed")
	flags.BoolVar(&c.wait, "wait", false, "wait until the run's deadline has passed, then remove its objects, or end when none are left; needs --expired and --run")
	flags.BoolVar(&c.yes, "yes", false, "do not ask for confirmation")
	flags.BoolVar(&c.dryRun, "dry-run", false, "list the objects, but remove nothing")
	cmd.AddCommand(newCleanupRender())
	return cmd
}

type cleanup struct {
	runID                      string
	expired, wait, yes, dryRun bool

	cmd *cobra.Command
	ui  *tui
	at  string // name of the cluster, for messages
	by  string // how cleanup selects the objects, for messages

	left cluster.Leftovers
}

func (c *cleanup) check() error {
	var errs []error
	if wrong := validation.IsValidLabelValue(c.runID); len(wrong) > 0 {
		errs = append(errs, exitcode.Usagef("--run %q is not a run ID (the ID is the value of the label %s on the objects that the run left)", c.runID, cluster.RunLabel))
	}
	if c.wait && (!c.expired || c.runID == "") {
		errs = append(errs, exitcode.Usagef("--wait requires --expired and --run (add --expired --run ID)"))
	}
	if c.wait && c.dryRun {
		errs = append(errs, exitcode.Usagef("--wait and --dry-run cannot be used together (leave out one of them)"))
	}
	return errors.Join(errs...)
}

// read reads the list of objects that the run in the directory args[0] created. Without arguments, it does nothing.
func (c *cleanup) read(args []string) (err error) {
	c.left.Run, c.by = c.runID, "label"
	switch {
	case len(args) == 0:
		return nil
	case c.expired:
		return exitcode.Usagef("--expired and a run directory cannot be used together (leave out one of them)")
	}
	if c.left, err = cluster.ReadLeftovers(args[0]); err != nil {
		return exitcode.Usagef("%v", err) // not wrapped: a wrapped error about a damaged run directory would set exit code 3
	}
	if c.runID != "" && c.runID != c.left.Run {
		return exitcode.Usagef("--run %s: %s is the directory of run %s (leave out --run or the directory)", c.runID, args[0], c.left.Run)
	}
	c.by = "label and by the UIDs in " + args[0]
	return nil
}

func (c *cleanup) agree(question string) error {
	if c.dryRun {
		return nil
	}
	ok, err := c.ui.confirm(c.cmd.Context(), c.cmd.InOrStdin(), question, c.yes)
	if err == nil && !ok {
		err = exitcode.Usagef("you did not confirm the removal, so loadgen removed nothing")
	}
	return err
}

func (c *cleanup) removeAll(ctx context.Context, cfg *rest.Config) error {
	what := "every run"
	if c.left.Run != "" {
		what = "run " + c.left.Run
	}
	if err := c.agree(fmt.Sprintf("Remove the objects that %s left in %s, selected by %s.", what, c.at, c.by)); err != nil {
		return err
	}
	if c.left.Run == "" {
		var err error
		if c.left.Keep, err = cluster.Alive(ctx, cfg); err != nil {
			return exitcode.EnvironmentError(err)
		}
		for _, run := range c.left.Keep {
			c.ui.Step(fmt.Sprintf("run %s is skipped, because it renewed the cluster's lock within the last minute (if the run is over, wait a minute; to remove its objects even while it runs, add --run %s)", run, run))
		}
	}
	return c.remove(ctx, cfg, c.left, "")
}

func (c *cleanup) remove(ctx context.Context, cfg *rest.Config, of cluster.Leftovers, head string) error {
	work, log := cluster.Cleanup, c.ui.Step
	if c.dryRun {
		work, log = cluster.PreviewCleanup, func(line string) { fmt.Fprintln(c.cmd.OutOrStdout(), terminal.CleanLines(line)) }
	}
	removed, err := work(ctx, cfg, of, log)
	if err == nil || removed.Any() {
		fmt.Fprintf(c.cmd.OutOrStdout(), "%s%s\n", head, removed)
	}
	return err
}

// removeExpired removes the objects of runs that are over. If it cannot remove the objects of one run, it continues
// with the other runs.
func (c *cleanup) removeExpired(ctx context.Context, cfg *rest.Config) error {
	if c.wait {
		why, err := cluster.AwaitExpired(ctx, cfg, c.runID, c.ui.Step)
		if err != nil {
			return err
		}
		c.ui.Step(fmt.Sprintf("run %s is over: %s", c.runID, why))
		return c.remove(ctx, cfg, c.left, "run "+c.runID+": ")
	}
	all, err := cluster.Traces(ctx, cfg)
	if err != nil {
		return exitcode.EnvironmentError(err)
	}
	var over, lines []string
	for _, t := range all {
		switch {
		case c.runID != "" && t.Run != c.runID:
		case t.Expired:
			over, lines = append(over, t.Run), append(lines, fmt.Sprintf("run %s: %s", t.Run, t.Why))
		default:
			c.ui.Step(fmt.Sprintf("run %s is skipped: %s", t.Run, t.Why))
		}
	}
	if len(over) == 0 {
		fmt.Fprintln(c.cmd.OutOrStdout(), "no run has expired")
		return nil
	}
	slices.Sort(lines)
	if err := c.agree(fmt.Sprintf("Remove the objects that these runs left in %s, selected by label:\n%s", c.at, strings.Join(lines, "\n"))); err != nil {
		return err
	}
	var errs []error
	for _, run := range over {
		if err := c.remove(ctx, cfg, cluster.Leftovers{Run: run}, "run "+run+": "); err != nil {
			errs = append(errs, fmt.Errorf("run %s: %w", run, err))
		}
	}
	return errors.Join(errs...)
}
