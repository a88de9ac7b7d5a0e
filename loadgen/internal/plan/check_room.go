package plan

import (
	"fmt"
	"maps"
	"math"
	"slices"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/stormglass/stormglass/loadgen/internal/builtin"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

// room describes all nodes of one pool: their number, and the pods, devices, CPU and memory of each node.
type room struct {
	count, pods, devices int64
	cpu, memory          int64 // in thousandths of a CPU and thousandths of a byte
}

// rooms returns the rooms of the pools whose nodes accept pods of a workload kind. It counts only live nodes.
func (c *forecast) rooms(kind string) (all []room) {
	n := c.Nodes
	for _, p := range n.PoolsFor(kind) {
		count := math.Ceil(float64(c.live()) * float64(p.Count) / float64(max(n.Count, 1)))
		all = append(all, room{int64(count), int64(p.Pods), int64(p.Devices), builtin.Milli(p.CPU), builtin.Milli(p.Memory)})
	}
	return all
}

// fit returns how many of the workload's pods would fit on the nodes if there were no other workloads.
func (d *placed) fit(rooms []room) int64 {
	var fit int64
	for _, r := range rooms {
		n := r.pods
		if cpu := builtin.Milli(d.CPU); cpu > 0 {
			n = min(n, r.cpu/cpu)
		}
		if memory := builtin.Milli(d.Memory); memory > 0 {
			n = min(n, r.memory/memory)
		}
		if d.Devices > 0 {
			n = min(n, r.devices/int64(d.Devices))
		}
		if d.AntiAffinity == "required" || d.WorkloadKind() == scenario.DaemonSet {
			n = min(n, 1)
		}
		fit += r.count * n
	}
	return fit
}

// demand is the total of one resource that the pods request, and the total that the nodes have.
type demand struct {
	what       string
	asked, has float64
}

func nodesIn(rooms []room) (n int) {
	for _, r := range rooms {
		n += int(r.count)
	}
	return n
}

// least returns how many pods of a workload must run at the same time. A DaemonSet needs one pod on each node. A Job
// needs only one pod, because its pods may run one after another. Other workloads need all replicas.
func (c *forecast) least(d *placed, rooms []room) int {
	switch d.WorkloadKind() {
	case scenario.DaemonSet:
		return min(c.live(), nodesIn(rooms))
	case scenario.Job, scenario.CronJob:
		return min(1, d.Replicas)
	}
	return d.Replicas
}

// demands returns, for each resource, the demand of all workloads and the room on the nodes. If `more` is not nil, demands
// adds one more pod of that workload. Nodes with taints, and the pods of DaemonSets on them, do not count.
func (c *forecast) demands(more *placed) []demand {
	rooms := c.rooms(scenario.Deployment)
	pods, cpu, memory, devices := demand{what: "pods"}, demand{what: "CPUs"}, demand{what: "bytes of memory"}, demand{what: "devices"}
	add := func(d *placed, n float64) {
		devices.asked += n * float64(d.Devices)
		pods.asked, cpu.asked, memory.asked = pods.asked+n, cpu.asked+n*float64(builtin.Milli(d.CPU))/1000, memory.asked+n*float64(builtin.Milli(d.Memory))/1000
	}
	for _, d := range c.alive {
		add(d, float64(c.least(d, rooms)))
	}
	if more != nil {
		add(more, 1)
	}
	for _, r := range rooms {
		n := float64(r.count)
		devices.has += n * float64(r.devices)
		pods.has, cpu.has, memory.has = pods.has+n*float64(r.pods), cpu.has+n*float64(r.cpu)/1000, memory.has+n*float64(r.memory)/1000
	}
	return []demand{pods, cpu, memory, devices}
}

func (c *forecast) capacity() {
	var last *placed
	for _, name := range slices.Sorted(maps.Keys(c.alive)) {
		d := c.alive[name]
		if c.tooLarge(d, c.rooms(d.WorkloadKind())) {
			return
		}
		if last == nil || d.since >= last.since {
			last = d
		}
	}
	for _, of := range c.demands(nil) {
		if of.asked > of.has {
			c.report(last.path, "use fewer pods, more nodes or larger nodes",
				"the pods of all workloads need %s %s, but the nodes have only %s", plain(of.asked), of.what, plain(of.has))
			return
		}
	}
}

func (c *forecast) tooLarge(d *placed, rooms []room) bool {
	fit, pods := d.fit(rooms), c.least(d, rooms)
	if int64(pods) <= fit {
		return false
	}
	nodes := min(c.live(), nodesIn(rooms))
	if nodes == 0 {
		c.report(d.path, "add a pool without taints", "the taints of all nodes keep off the %d pods of %q", pods, d.Name)
		return true
	}
	var largestCPU, largestMemory, largestDevices int64
	each := room{cpu: math.MaxInt64, memory: math.MaxInt64} // number of nodes, and the least CPU and memory of any node
	for _, r := range rooms {
		largestCPU, largestMemory, largestDevices = max(largestCPU, r.cpu), max(largestMemory, r.memory), max(largestDevices, r.devices)
		each.count, each.cpu, each.memory = each.count+r.count, min(each.cpu, r.cpu), min(each.memory, r.memory)
	}
	share := (int64(pods) + each.count - 1) / max(each.count, 1) // pods for each node
	switch {
	case int64(d.Devices) > largestDevices: // the scenario reports it
	case builtin.Milli(d.CPU) > largestCPU:
		c.noPodFits(d, "cpu", resource.NewMilliQuantity(each.cpu/max(share, 1), resource.DecimalSI), d.CPU+" CPUs", resource.NewMilliQuantity(share*builtin.Milli(d.CPU), resource.DecimalSI))
	case builtin.Milli(d.Memory) > largestMemory:
		c.noPodFits(d, "memory", resource.NewQuantity(each.memory/max(share, 1)/1000>>10<<10, resource.BinarySI), d.Memory, resource.NewQuantity(share*builtin.Milli(d.Memory)/1000, resource.BinarySI))
	case d.AntiAffinity == "required" && d.path != d.made+".replicas":
		c.report(d.path, fmt.Sprintf("use at most %d, or antiAffinity: preferred", fit), "antiAffinity: required allows only one pod on each node, but there are %d pods for %d nodes", pods, nodes)
	case d.AntiAffinity == "required":
		c.report(d.made+".antiAffinity", fmt.Sprintf("write preferred, or at most %d replicas", fit), "required allows only one pod on each node, but there are %d pods for %d nodes", pods, nodes)
	default:
		c.report(d.path, fmt.Sprintf("use at most %d pods, more nodes or larger nodes", fit), "%d pods of %q do not fit on %d nodes", pods, d.Name, nodes)
	}
	return true
}

// noPodFits reports an error for a pod that is larger than every node. If the user set the pod's size, the error is at
// the deploy. If the size is the default, the error is at the nodes, which are too small.
func (c *forecast) noPodFits(d *placed, field string, most *resource.Quantity, size string, least *resource.Quantity) {
	at, hint := d.made+"."+field, "increase nodes."+field
	if most.Sign() > 0 {
		hint = fmt.Sprintf("use at most %s so that all pods fit, or increase nodes.%s", most, field)
	}
	if !c.Written(at) {
		if at = "nodes." + field; len(c.Nodes.Pools) > 0 {
			at = "nodes.pools"
		}
		hint = fmt.Sprintf("use at least %s so that all pods fit", least)
	}
	c.report(at, hint, "no node has room for a pod of %s", size)
}

// updates reports an error for a rollingUpdate that never ends, because it may remove a pod only after a new pod is
// Ready, but the nodes have no room for another pod.
func (c *forecast) updates() {
	for _, name := range slices.Sorted(maps.Keys(c.alive)) {
		d := c.alive[name]
		if d.update == nil || d.Replicas == 0 || c.down > 0 || takesAway(d.update, d.Replicas) {
			continue
		}
		fit := d.fit(c.rooms(d.WorkloadKind()))
		full := slices.ContainsFunc(c.demands(d), func(of demand) bool { return of.asked > of.has })
		if fit > int64(d.Replicas) && !full {
			continue
		}
		why := "no node has room for an additional pod"
		if d.AntiAffinity == "required" && !full {
			why = "antiAffinity: required allows only one pod on each node"
		}
		c.report(d.updated+".maxUnavailable", "write maxUnavailable: 1, or use fewer pods or more nodes",
			"the rollingUpdate of %q never ends: maxUnavailable %s lets none of the %d pods be removed first, and %s", name, d.update.MaxUnavailable, d.Replicas, why)
		return
	}
}

// takesAway reports whether a rollingUpdate may remove a pod before a new pod is Ready. The Deployment controller
// rounds percentages of maxSurge up and percentages of maxUnavailable down, and allows one unavailable pod if both are
// zero (ResolveFenceposts of Kubernetes' deployment util).
func takesAway(a *scenario.Action, replicas int) bool {
	return Scaled(a.MaxUnavailable, replicas, false) > 0 || Scaled(a.MaxSurge, replicas, true) == 0
}

// Scaled parses a number or a percentage of n, such as maxSurge, and rounds a percentage up or down. It returns 0 if the
// text is neither.
func Scaled(text string, n int, up bool) int {
	value := intstr.Parse(text)
	scaled, _ := intstr.GetScaledValueFromIntOrPercent(&value, n, up)
	return scaled
}
