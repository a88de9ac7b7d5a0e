package workers

import (
	"fmt"
	"net"
	"strconv"

	"github.com/stormglass/stormglass/controlplane/control"
	"github.com/stormglass/stormglass/internal/exitcode"
	"github.com/stormglass/stormglass/loadgen/internal/load/kind"
	"github.com/stormglass/stormglass/loadgen/internal/plan"
)

// CheckAddress returns an error unless address has the form HOST:PORT. flag is the name of the flag, without --, for
// the error message.
func CheckAddress(flag, address string) error {
	_, port, err := net.SplitHostPort(address)
	if err == nil {
		_, err = strconv.ParseUint(port, 10, 16)
	}
	if err != nil {
		return fmt.Errorf("--%s %q is not HOST:PORT", flag, address)
	}
	return nil
}

// Check returns a usage error if workers with the options o cannot divide the loads and nodes of the scenario s.
func Check(o Options, s *plan.Plan) error {
	switch {
	case o.Count == 0 && o.Listen == "" && o.Starter == nil:
		return nil
	case o.Count < 1 || o.Count > Most:
		return exitcode.Usagef("--workers %d: must be between 1 and %d", o.Count, Most)
	}
	divided := 0
	for _, l := range s.Loads {
		if !kind.Divides(l.Kind) {
			continue
		}
		divided++
		if most, of := kind.MaxWorkers(l.Load); most > 0 && o.Count > most {
			return exitcode.UsageError(s.Errorf(l.Path, fmt.Sprintf("at most --workers %d", most),
				"load %s has only %d %s, which cannot be divided among %d workers", l.Name, most, of, o.Count))
		}
	}
	if divided > 0 {
		return nil
	}
	switch whole := WholeNodes(s); {
	case s.Nodes.Count == 0 || whole != "":
		if whole != "" {
			whole = "; its nodes cannot be divided: " + whole
		}
		return exitcode.UsageError(s.Errorf("phases", "run it without --workers",
			"scenario %s has no loads or nodes that can be divided among workers; actions and loads of kinds history, replay and custom stay in one process%s", s.Name, whole))
	case o.Count > s.Nodes.Count:
		return exitcode.UsageError(s.Errorf("nodes.count", fmt.Sprintf("at most --workers %d", s.Nodes.Count),
			"%d nodes cannot be divided among %d workers, and the scenario has no other load to divide", s.Nodes.Count, o.Count))
	}
	return nil
}

// WholeNodes returns the reason why the coordinator runs all simulated nodes itself. It returns "" if workers divide
// the nodes or there are no nodes. The coordinator runs the nodes if the user must label them, or if the scenario uses
// their kubelet API, because one machine must then have the addresses of all kubelets.
func WholeNodes(s *plan.Plan) string {
	if s.Nodes.Count == 0 {
		return ""
	}
	const needs = " requires that one process serves all kubelet APIs"
	switch {
	case s.Nodes.KubeletAddress != "":
		return "nodes.kubeletAddress" + needs
	case s.ControlPlane.MetricsServer.Replicas > 0:
		return "controlPlane.metricsServer" + needs
	case s.Nodes.HasAdminLabels():
		return "nodes.pools have labels that kubelets may not set, and workers have no other credentials"
	}
	for _, l := range s.Loads {
		if l.Kind == "streams" {
			return "load " + l.Name + " (streams)" + needs
		}
	}
	for _, f := range s.Faults {
		if f.Kind == control.KubeletUnreachable {
			return "fault " + f.Kind + needs
		}
	}
	return ""
}

// Whole returns the names of the loads that the coordinator runs itself, because workers cannot divide loads of their
// kind.
func Whole(s *plan.Plan) (names []string) {
	for _, l := range s.Loads {
		if !kind.Divides(l.Kind) {
			names = append(names, l.Name)
		}
	}
	return names
}
