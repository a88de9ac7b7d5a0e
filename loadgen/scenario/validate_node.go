package scenario

import (
	"math"
	"net/netip"
	"slices"
	"time"

	"github.com/stormglass/stormglass/controlplane/control"
)

func (v *validator) nodes() {
	n := v.s.Nodes
	v.between("nodes.count", float64(n.Count), 0, MaxNodes)
	if n.Later < 0 || n.Later > max(0, n.Count) {
		v.fail("nodes.later", "from 0 to nodes.count", "%d is out of bounds", n.Later)
	} else if n.Later > 0 && !slices.ContainsFunc(v.s.Faults(), func(f PlacedFault) bool { return f.Traits().Adds }) {
		v.fail("nodes.later", "add faults: [{kind: nodeScaleUp}] to a phase", "%d nodes never register", n.Later)
	}
	v.oneOf("nodes.fidelity", n.Fidelity, "kubelet", "lean", "shared")
	if n.Identity != "" && v.oneOf("nodes.identity", n.Identity, IdentityCertificate, IdentityToken, IdentityAuto) && n.Fidelity == "shared" {
		v.fail("nodes.identity", "leave it out, or set fidelity: kubelet", "with fidelity: shared, all nodes use the identity of the load")
	}
	if _, ok := control.ReleaseOf(n.Version); n.Version != "" && !ok && !v.s.recorded {
		v.fail("nodes.version", control.ReleaseHint(n.Version), "unknown version %q", n.Version)
	} else if n.Version != "" && !v.s.recorded {
		if skew := v.s.ControlPlane.KubeletSkew(v.s.NodesRelease()); skew != "" {
			v.fail("nodes.version", "upstream's version skew policy: kubelets may be up to three minor versions older than the API servers, and not newer", "%s", skew)
		}
	}
	if n.KubeProxy && n.Fidelity == "shared" {
		v.fail("nodes.kubeProxy", "write fidelity: kubelet", "with fidelity: shared, nodes open no watches")
	}
	if n.Events && n.Fidelity == "shared" {
		v.fail("nodes.events", "write fidelity: kubelet", "with fidelity: shared, nodes create no Events")
	}
	if at, err := netip.ParseAddrPort(n.KubeletAddress); n.KubeletAddress != "" && (err != nil || at.Addr().IsUnspecified() || at.Addr().IsLoopback()) {
		v.fail("nodes.kubeletAddress", "write an address and the first port, for example 10.0.0.5:10250", "%q is not an address that other machines can reach", n.KubeletAddress)
	} else if last := int(at.Port()) + n.Count - 1; n.KubeletAddress != "" && last > math.MaxUint16 {
		v.fail("nodes.kubeletAddress", "use a lower port, or fewer nodes", "%d nodes need ports up to %d", n.Count, last)
	}
	v.between("nodes.zones", float64(n.Zones), 1, 100)
	v.nodeSize("nodes", n.CPU, n.Memory, n.Pods, n.Devices, n.ObjectSize)
	v.pools()
	v.between("nodes.registerRate", float64(n.RegisterRate), 0.01, MaxRate)
	if n.LeaseRenew.D() < time.Second {
		v.fail("nodes.leaseRenew", "at least 1s; a kubelet's is 10s", "%s is too short", n.LeaseRenew)
	}
	if n.LeaseDuration < n.LeaseRenew {
		v.fail("nodes.leaseDuration", "write four times leaseRenew, as kubelets do", "%s is shorter than leaseRenew, so Leases would expire between renewals", n.LeaseDuration)
	}
	if n.StatusReport.D() < time.Second {
		v.fail("nodes.statusReport", "at least 1s; a kubelet's is 5m", "%s is too short", n.StatusReport)
	}
	v.podLives()
}

func (v *validator) nodeSize(path, cpu, memory string, pods, devices int, object Bytes) {
	v.between(path+".pods", float64(pods), 1, 10_000)
	v.between(path+".devices", float64(devices), 0, maxDevices)
	v.cpu(path+".cpu", cpu)
	v.memory(path+".memory", memory, 1<<20)
	if object != 0 && (object < 2<<10 || object > 1<<20) {
		v.fail(path+".objectSize", "from 2KiB to 1MiB; for example 15KiB", "%d bytes is out of bounds", object)
	}
}
