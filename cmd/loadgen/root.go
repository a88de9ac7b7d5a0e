package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/klog/v2"

	"github.com/stormglass/stormglass/loadgen"
)

// verdictError carries the exit code of a run that was judged; its report has
// said the rest.
type verdictError int

func (v verdictError) Error() string { return fmt.Sprintf("exit code %d", int(v)) }

// run is the program: arguments and streams in, exit code out.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	ctx, signals, stop := listen(ctx)
	defer stop()

	// client-go logs to standard error, past all progress; what matters comes
	// back as errors.
	klog.LogToStderr(false)
	klog.SetOutput(io.Discard)

	root := newRoot(signals)
	root.SetArgs(args)
	root.SetIn(stdin)
	root.SetOut(stdout)
	root.SetErr(stderr)
	err := root.ExecuteContext(ctx)
	var verdict verdictError
	switch {
	case err == nil:
		return loadgen.ExitPass
	case errors.As(err, &verdict):
		return int(verdict)
	case errors.Is(err, context.Canceled):
		fmt.Fprintln(stderr, "loadgen: interrupted")
		return loadgen.ExitNoData
	}
	printError(stderr, err)
	return loadgen.ExitCode(err)
}

// printError writes one line per error, each with the program's name.
func printError(stderr io.Writer, err error) {
	for _, line := range strings.Split(strings.TrimSpace(err.Error()), "\n") {
		fmt.Fprintln(stderr, "loadgen: "+line)
	}
}

func newRoot(signals *interrupts) *cobra.Command {
	root := &cobra.Command{
		Use:   "loadgen",
		Short: "Storms for Kubernetes control planes, with a verdict",
		Long: `loadgen drives a storm at a Kubernetes control plane - a 500-node rollout, a
watch flood, a node-failure storm - records what every component's metrics
say, and ends with a verdict and a report. Without --kubeconfig it brings up a
real control plane of its own (etcd, kube-apiserver, kube-scheduler,
kube-controller-manager) for the run.

Exit codes: 0 every gate passed, 1 a gate failed, 2 bad usage or a bad
scenario, 3 could not judge (no data, generator saturated, interrupted),
4 the environment failed.`,
		Example: `  loadgen run rollout-demo
  loadgen run rollout-500 --set nodes.count=100
  loadgen run node-failure-storm --kubeconfig ~/.kube/config`,
		Args:              cobra.NoArgs,
		RunE:              func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error { return refuseEmpty(cmd.Flags()) },
		SilenceUsage:      true,
		SilenceErrors:     true,
		Version:           loadgen.Version(),
	}
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return loadgen.Usage(fmt.Errorf("%w (`%s --help` shows the flags)", err, cmd.CommandPath()))
	})
	root.AddCommand(newRun(signals), newScenarios(), newValidate(), newNodes(signals), newObserve(), newReport(), newGate(), newAlerts(), newCleanup())
	root.InitDefaultCompletionCmd()
	root.InitDefaultHelpCmd()
	wrapArgs(root)
	return root
}

// refuseEmpty refuses a flag that is set to nothing, as --kubeconfig "$UNSET" is: it
// would be as if it had been left out, and the run be one of something else. Where
// nobody reads a summary or a JUnit file, none is written.
func refuseEmpty(flags *pflag.FlagSet) error {
	var errs []error
	flags.Visit(func(f *pflag.Flag) {
		if f.Value.Type() == "string" && f.Value.String() == "" && f.Name != "summary" && f.Name != "junit" {
			errs = append(errs, fmt.Errorf("--%s is empty (give it a value, or leave it out)", f.Name))
		}
	})
	if len(errs) == 0 {
		return nil
	}
	return loadgen.Usage(errors.Join(errs...))
}

// wrapArgs makes wrong arguments a usage error with a hint.
func wrapArgs(cmd *cobra.Command) {
	check := cmd.Args
	if check != nil {
		cmd.Args = func(c *cobra.Command, args []string) error {
			err := check(c, args)
			if err == nil {
				return nil
			}
			if len(args) > 0 && args[0] != "" { // of nothing, everything is near
				if near := c.SuggestionsFor(args[0]); len(near) > 0 {
					return loadgen.Usage(fmt.Errorf("%w (did you mean %q?)", err, near[0]))
				}
			}
			return loadgen.Usage(fmt.Errorf("%w (usage: %s)", err, c.UseLine()))
		}
		cmd.SuggestionsMinimumDistance = 2
	}
	for _, sub := range cmd.Commands() {
		wrapArgs(sub)
	}
}
