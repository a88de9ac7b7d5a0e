package scenario

import (
	"fmt"
	"time"
)

func (v *validator) nodes() {
	n := v.s.Nodes
	v.between("nodes.count", float64(n.Count), 0, MaxNodes)
	v.oneOf("nodes.fidelity", n.Fidelity, "kubelet", "lean", "shared")
	if n.KubeProxy && n.Fidelity == "shared" {
		v.fail("nodes.kubeProxy", "write fidelity: kubelet", "nodes of fidelity shared hold no watches of their own")
	}
	if n.Events && n.Fidelity == "shared" {
		v.fail("nodes.events", "write fidelity: kubelet", "nodes of fidelity shared post no Events")
	}
	v.between("nodes.zones", float64(n.Zones), 1, 100)
	v.nodeSize("nodes", n.CPU, n.Memory, n.Pods)
	seen := map[string]bool{}
	for i, s := range n.Shapes {
		path := fmt.Sprintf("nodes.shapes[%d]", i)
		v.uniqueName(path, "shape", s.Name, seen)
		v.weight(path+".weight", s.Weight)
		if s.CPU == n.CPU { // checked above
			s.CPU = ""
		}
		if s.Memory == n.Memory {
			s.Memory = ""
		}
		v.nodeSize(path, s.CPU, s.Memory, s.Pods)
	}
	v.between("nodes.registerRate", float64(n.RegisterRate), 0.01, MaxRate)
	if n.LeaseRenew.D() < time.Second {
		v.fail("nodes.leaseRenew", "at least 1s; a kubelet's is 10s", "%s is too short", n.LeaseRenew)
	}
	if n.LeaseDuration < n.LeaseRenew {
		v.fail("nodes.leaseDuration", "a kubelet's is four times leaseRenew", "%s ends before the next renewal", n.LeaseDuration)
	}
	if n.StatusReport.D() < time.Second {
		v.fail("nodes.statusReport", "at least 1s; a kubelet's is 5m", "%s is too short", n.StatusReport)
	}
}

func (v *validator) nodeSize(path, cpu, memory string, pods int) {
	v.between(path+".pods", float64(pods), 1, 10_000)
	v.cpu(path+".cpu", cpu)
	v.memory(path+".memory", memory, 1<<20)
}
