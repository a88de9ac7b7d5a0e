package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/stormglass/stormglass/internal/commandline"
	"github.com/stormglass/stormglass/internal/exitcode"
	"github.com/stormglass/stormglass/loadgen/internal/cluster"
	"github.com/stormglass/stormglass/loadgen/internal/node"
	"github.com/stormglass/stormglass/loadgen/internal/run"
	"github.com/stormglass/stormglass/loadgen/result"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

func newNodes(signals *interrupts) *cobra.Command {
	var o run.Options
	var kubeconfig kubeconfigFlags
	var count int
	var fidelity, identity string
	var output *commandline.Output
	var yes bool
	cmd := &cobra.Command{
		Use:   "nodes",
		Short: "Run only simulated nodes, until Ctrl-C",
		Long: `Run only simulated nodes, until Ctrl-C: each registers under its own identity, renews
its Lease, reports its status, and makes its pods Ready or deletes them. With
--kubeconfig they join that cluster and are removed at the end; without it, a control
plane is started for them.

On your own cluster the nodes are tainted, so that no other workload is scheduled to
them; the command prints the nodeSelector and toleration that your pods need. On a
control plane started by 'controlplane up' or by this command the nodes are not tainted,
so a plain 'kubectl create deployment' works. After a second Ctrl-C the command stops
removing objects, and prints how to remove the rest.

Fidelity "kubelet" sends every request that a real kubelet sends, over one connection
per node; "lean" leaves out requests that change nothing; "shared" has one watch for all
nodes.

Identity "certificate" gives each node a client certificate that the cluster signs, like
a kubelet's; "token" gives it a token of a ServiceAccount, which RBAC authorizes instead
of the Node authorizer; "auto" requests one certificate from the cluster, and uses tokens
if the cluster does not sign it.`,
		Example: `  loadgen nodes --count 500
  loadgen nodes --count 50 --kubeconfig planes/default/kubeconfigs/admin.kubeconfig --yes
  loadgen nodes --count 5000 --fidelity shared`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := errors.Join(kubeconfig.into(cmd, &o.Kubeconfig), checkNodes(count, fidelity, identity)); err != nil {
				return err
			}
			if cmd.Flags().Changed("identity") {
				o.Overrides = append([]string{"nodes.identity=" + identity}, o.Overrides...)
			}
			s, err := scenario.ForNodes(count, fidelity, o.Overrides)
			if err != nil {
				return exitcode.UsageError(err)
			}
			ui := newTUI(cmd)
			o.Scenario, o.Progress, o.Hurry = s, ui, signals.second()
			o.Confirm = func(ctx context.Context, p cluster.Plan) (bool, error) {
				return ui.confirm(ctx, cmd.InOrStdin(), p.String(), yes)
			}
			nodes, err := run.Nodes(cmd.Context(), o)
			ui.done()
			if err != nil {
				return err
			}
			w := cmd.OutOrStdout()
			return output.Write(w, nodes, func() error { return printNodes(w, nodes) })
		},
	}
	flags := cmd.Flags()
	flags.IntVar(&count, "count", 100, "`number` of nodes")
	flags.StringVar(&fidelity, "fidelity", "kubelet", "`how` closely nodes imitate kubelets (see above): kubelet, lean or shared")
	flags.StringVar(&identity, "identity", scenario.IdentityAuto, "`how` nodes authenticate (see above): auto, certificate or token")
	addSetFlag(cmd, &o.Overrides)
	flags.StringVar(&o.ControlPlane, "controlplane", "", "the controlplane `binary` (default: next to loadgen, then PATH)")
	kubeconfig.add(flags, &o.Kubeconfig)
	flags.BoolVar(&yes, "yes", false, "do not ask before creating objects in your cluster")
	output = commandline.AddOutput(cmd)
	return cmd
}

func printNodes(w io.Writer, nodes result.Nodes) error {
	ready := fmt.Sprintf("%d nodes Ready in %.1f s", nodes.Count, nodes.ReadySeconds)
	if nodes.ReadySeconds == 0 {
		ready = fmt.Sprintf("stopped before all %d nodes were Ready", nodes.Count)
	}
	fmt.Fprintf(w, "%s; %d heartbeats, p99 %.1f ms; missed heartbeats: %d because of the generator, %d because of the server; %d pods started, %d stopped\n",
		ready, nodes.Heartbeats, nodes.Heartbeat.P99*1000,
		nodes.MissedByGenerator, nodes.MissedByServer, nodes.PodsStarted, nodes.PodsStopped)
	for _, life := range slices.Sorted(maps.Keys(nodes.PodLives)) {
		var parts []string
		for _, event := range slices.Sorted(maps.Keys(nodes.PodLives[life])) {
			parts = append(parts, fmt.Sprintf("%s %d", event, nodes.PodLives[life][event]))
		}
		fmt.Fprintf(w, "pods of the podLives entry %s: %s\n", life, strings.Join(parts, ", "))
	}
	return nil
}

// checkNodes checks the values of the flags of `nodes`. Errors name the flags.
func checkNodes(count int, fidelity, identity string) error {
	var errs []error
	if count < 1 || count > scenario.MaxNodes {
		errs = append(errs, exitcode.Usagef("--count %d is out of bounds (from 1 to %d)", count, scenario.MaxNodes))
	}
	if !slices.Contains(node.Fidelities(), fidelity) {
		errs = append(errs, exitcode.Usagef("--fidelity %q is unknown (%s)", fidelity, strings.Join(node.Fidelities(), ", ")))
	}
	if known := scenario.Identities(); !slices.Contains(known, identity) {
		errs = append(errs, exitcode.Usagef("--identity %q is unknown (%s)", identity, strings.Join(known, ", ")))
	}
	return errors.Join(errs...)
}
