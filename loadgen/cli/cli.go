// Package cli is the command loadgen.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/stormglass/stormglass/internal/commandline"
	"github.com/stormglass/stormglass/internal/exitcode"
	"github.com/stormglass/stormglass/internal/terminal"
	"github.com/stormglass/stormglass/loadgen/internal/run"
)

// Main runs the command with the process's arguments and returns its exit code.
func Main() int {
	commandline.AbortOnCrash()
	return execute(context.Background(), os.Args[1:], os.Stdin, os.Stdout, terminal.Unstuck(os.Stderr))
}

// verdictError is the exit code of a judged run, as an error. Main does not print it, because the report shows the
// result.
type verdictError int

func (v verdictError) Error() string { return fmt.Sprintf("exit code %d", int(v)) }

func execute(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) (code int) {
	defer commandline.OnCrash("loadgen", stderr, &code)
	ctx, signals, stop := listen(ctx)
	defer stop()

	root := newRoot(signals)
	addGlobals(root, stderr)
	root.SetArgs(args)
	root.SetIn(stdin)
	root.SetOut(stdout)
	root.SetErr(stderr)
	if cmd, _, err := root.Find(args); err == nil {
		signals.brief.Store(isBrief(cmd))
		if isGenerator(cmd) {
			go tuneGC(ctx)
		}
	}
	err := commandline.Execute(ctx, root)
	var verdict verdictError
	switch {
	case err == nil:
		return exitcode.Pass
	case errors.As(err, &verdict):
		return int(verdict)
	case errors.Is(err, context.Canceled):
		fmt.Fprintln(stderr, "loadgen: interrupted")
		return exitcode.NoData
	}
	printError(stderr, err)
	return exitcode.Of(err)
}

func printError(stderr io.Writer, err error) {
	for _, line := range terminal.Problems(err) {
		fmt.Fprintln(stderr, "loadgen: "+line)
	}
}

func newRoot(signals *interrupts) *cobra.Command {
	root := &cobra.Command{
		Use:   "loadgen",
		Short: "Load-test Kubernetes control planes and judge the results",
		Long: `Load-test a Kubernetes control plane: run a scenario (for example a 500-node rollout
or a watch flood), record the metrics of the components, and check gates. A gate is a
bound on a metric, for example on a latency, or an alert that must or must not fire.
A scenario consists of phases (periods) and loads (requests, objects or watches).

Without --kubeconfig or --current-cluster, a run starts its own control plane on this
machine: etcd, kube-apiserver, kube-scheduler and kube-controller-manager.
'controlplane up' starts a control plane without a run. The files in docs/ are at
https://github.com/stormglass/stormglass.

Exit codes of run, report and gate (2 and 4 mean the same for all commands):
  0  every gate passed
  1  a gate failed, a condition of --abort-on held, a phase with a gate reached its time
     limit before its end condition held, or the cluster kept a load below its rate
  2  bad usage or a bad scenario
  3  neither passed nor failed: no gates or no data, a latency or duration exceeded its
     bound while the machine was busy, the load generator was too busy to measure, a
     load was below its rate because of its own settings (for example maxInFlight), or
     the run was interrupted
  4  the environment failed: the cluster, a component of the control plane, or this machine`,
		Example: `  loadgen run rollout-demo
  loadgen run rollout-500 --set nodes.count=100
  loadgen run node-failure-storm --kubeconfig ~/.kube/config`,
		Args:          cobra.NoArgs,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
		SilenceUsage:  true,
		SilenceErrors: true,
		Version:       run.Version(),
	}
	commandline.SetHelp(root)
	commandline.Group(root, "Run", newRun(signals), newAB(signals), newCapacity(signals), newNodes(signals))
	commandline.Group(root, "Scenarios", newScenarios(), newValidate(), newImport(), newSchema())
	commandline.Group(root, "Analysis", newReport(), newTrace(), newDiagnose(), newGate(), newAlerts())
	commandline.Group(root, "Many runs", newCompare(), newBaseline(), newTrend(), newServe(), newPublish(), newPrune())
	commandline.Group(root, "Metrics and recordings", newRecord(), newQuery(), newExport(), newObserve())
	commandline.Group(root, "Your cluster and workers", newCleanup(), newWorkers(), newWorker())
	commandline.Group(root, "Tools", newVersion(), commandline.ManCommand())
	root.SetCompletionCommandGroupID("Tools")
	root.SetHelpCommandGroupID("Tools")
	// These flags may be empty. The command then writes no file.
	commandline.Strict(root, exitcode.UsageError, "summary", "junit")
	completeValues(root)
	return root
}
