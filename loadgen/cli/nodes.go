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
		Short: "Run simulated nodes without load, until Ctrl-C",
		Long: `Run simulated nodes without load, until Ctrl-C. Like a kubelet, each node registers,
renews its Lease, reports its status, and starts and stops its pods.

Without --kubeconfig or --current-cluster, the command starts its own control plane and
prints the path of its kubeconfig. With one of these flags, the nodes join your cluster,
and the command removes them at the end. After a second Ctrl-C, it stops removing them
and prints how to remove the rest.

In your cluster, the nodes have a taint that keeps other pods away. The command prints
the nodeSelector and the toleration that your pods need. On a control plane that
'controlplane up' or this command started, the nodes have no taint.

Values of --fidelity:
  kubelet      every request that a kubelet sends, over one connection per node
  lean         only requests that change something, and watches
  shared       like lean, but with watches that all nodes share

Values of --identity:
  certificate  a client certificate that the cluster signs, as for a kubelet
  token        a ServiceAccount token: RBAC, not the Node authorizer, authorizes the node
  auto         certificate if the cluster signs a test certificate, otherwise token`,
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
	flags.StringVar(&fidelity, "fidelity", "kubelet", "`set` of kubelet requests that each node sends (see above): kubelet, lean or shared")
	flags.StringVar(&identity, "identity", scenario.IdentityAuto, "`kind` of credentials of each node (see above): auto, certificate or token")
	addSetFlag(cmd, &o.Overrides)
	flags.Lookup("set").Usage = "set a scenario field: `path=value`, for example nodes.zones=3 or controlPlane.etcd.members=3 (repeatable)"
	flags.StringVar(&o.ControlPlane, "controlplane", "", "controlplane `binary` (default: next to loadgen, then PATH)")
	kubeconfig.add(flags, &o.Kubeconfig)
	flags.BoolVar(&yes, "yes", false, "create objects in your cluster without asking")
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
