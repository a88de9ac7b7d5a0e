package scenario

import (
	"fmt"
	"slices"
	"strings"

	resourcev1 "k8s.io/api/resource/v1"
	schedulerv1 "k8s.io/kube-scheduler/config/v1"
)

// DeviceDriver is the name of the simulated device driver.
const DeviceDriver = "gpu.stormglass.dev"

const (
	// maxDevices is the maximum number of devices of a node. One ResourceSlice contains all devices of a node.
	maxDevices = resourcev1.ResourceSliceMaxDevices
	// maxClaimed is the maximum number of devices of a pod. One ResourceClaim contains all devices of a pod.
	maxClaimed = resourcev1.AllocationResultsMaxSize

	// allocator is the scheduler plugin that allocates devices.
	allocator = "DynamicResources"
)

// mostDevices returns the largest number of devices on one node, among the nodes that accept pods of a workload kind.
func (n *Nodes) mostDevices(kind string) int {
	most := 0
	for _, p := range n.PoolsFor(kind) {
		most = max(most, p.Devices)
	}
	return most
}

// devices checks that some node has enough devices for each pod of the deploy, and that the API server serves claims.
func (v *validator) devices(path string, a *Action) {
	if a.Devices == 0 || a.Kind != "deploy" {
		return
	}
	at := path + ".devices"
	v.between(at, float64(a.Devices), 0, maxClaimed)
	switch most := v.s.Nodes.mostDevices(a.WorkloadKind()); {
	case most == 0:
		v.fail(at, fmt.Sprintf("write nodes: {devices: %d}", max(8, a.Devices)), "no simulated node has devices")
	case a.Devices > most && a.Devices <= maxClaimed:
		v.fail(at, fmt.Sprintf("use at most %d, or increase nodes.devices", most), "no node has room for a pod with %d devices", a.Devices)
	}
	const flag = "runtime-config"
	off := resourcev1.SchemeGroupVersion.String() + "=false"
	if strings.Contains(v.s.ControlPlane.APIServer.Flags[flag], off) {
		v.fail("controlPlane.apiServer.flags."+flag, "leave "+off+" out", "pods need the API for device claims, which is turned off")
	}
}

// allocates reports an error if pods claim devices but a scheduler profile disables the plugin that allocates them.
func (v *validator) allocates(path string, everywhere schedulerv1.PluginSet) {
	is := func(p schedulerv1.Plugin) bool { return p.Name == allocator }
	off := slices.ContainsFunc(everywhere.Disabled, func(p schedulerv1.Plugin) bool { return is(p) || p.Name == "*" })
	if off && !slices.ContainsFunc(everywhere.Enabled, is) && v.s.anyAction(func(a *Action) bool { return a.Devices > 0 }) {
		v.fail(path, fmt.Sprintf("add enabled: [{name: %s}]", allocator), "pods with devices never start, because the scheduler does not allocate devices without %s", allocator)
	}
}
