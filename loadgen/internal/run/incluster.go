package run

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/stormglass/stormglass/internal/exitcode"
	"github.com/stormglass/stormglass/loadgen/internal/cluster"
	"github.com/stormglass/stormglass/loadgen/internal/plan"
	"github.com/stormglass/stormglass/loadgen/internal/workers"
)

// apiServer is the only component whose metrics are available in every cluster.
const apiServer = "kube-apiserver"

// InCluster checks the options of a run that will run inside the cluster that it loads. It performs the checks of Run,
// except those that depend on this machine. It returns the RBAC rules that the run needs, and a note for each gate that
// will have no data. If the rules depend on the cluster's resources, InCluster reads these from the cluster in
// o.Kubeconfig.
func InCluster(ctx context.Context, o Options) (rules cluster.Rules, notes []string, err error) {
	asked := o.Kubeconfig
	o.Kubeconfig = cluster.Kubeconfig{Files: cluster.InCluster}
	c, err := o.compile()
	if err != nil {
		return nil, nil, err
	}
	s := c.plan
	err = errors.Join(faultErrors(s, "leave out --render: the fault needs a bundled control plane"), checkPod(s), o.checkLoads(s), workers.Check(o.Workers, s), o.checkCustom(), o.checkRate(s), o.checkFuse())
	if err != nil {
		return nil, nil, err
	}
	tell := func(string) {}
	if o.Progress != nil {
		tell = o.Progress.Step
	}
	rules, err = cluster.RunRules(ctx, s, cluster.RulesOptions{NoLock: o.Fuse.NoLock, Kubeconfig: asked, Tell: tell})
	switch {
	case err == nil:
	case asked.Files == "":
		return nil, nil, exitcode.Usagef("scenario %s: the required permissions depend on your cluster: %w (add --kubeconfig FILE or --current-cluster, so that loadgen can look them up)", s.Name, err)
	default:
		return nil, nil, exitcode.EnvironmentError(err)
	}
	for _, g := range c.gates {
		if lacks := g.Lacks([]string{apiServer}); len(lacks) > 0 && o.Prometheus == nil {
			notes = append(notes, fmt.Sprintf("gate %s will have no data (exit 3), because the metrics of %s are not available (read them from your Prometheus with --prometheus URL, or leave out the gate with --without-gate %s)",
				g.Name, strings.Join(lacks, ", "), g.Name))
		}
	}
	return rules, notes, nil
}

// checkPod returns errors for parts of a scenario that do not work in a pod whose image contains only loadgen.
func checkPod(s *plan.Plan) error {
	var errs []error
	for _, h := range s.Hooks {
		errs = append(errs, exitcode.UsageError(s.Errorf(h.Path, "leave out hooks with --no-hooks", "the image does not contain the program %s", h.Run[0])))
	}
	if traced(s.Scenario) > 0 {
		errs = append(errs, exitcode.UsageError(s.Errorf("tracing.sample", "leave it out", "a run in a pod cannot get the spans of the cluster")))
	}
	if s.Nodes.KubeletAddress != "" {
		errs = append(errs, exitcode.UsageError(s.Errorf("nodes.kubeletAddress", "leave it out", "a pod does not have that address")))
	}
	return errors.Join(errs...)
}
