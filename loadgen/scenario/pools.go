package scenario

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation"
	kubelet "k8s.io/kubelet/pkg/apis"
)

// NodePool is a group of nodes with the same labels, taints, capacity and images.
type NodePool struct {
	// Name: name of the pool; also the label node.kubernetes.io/instance-type, unless `labels` sets this label
	Name string `yaml:"name"`
	// Count: number of nodes. Pools without a count share the remaining nodes by weight
	Count  int     `yaml:"count,omitempty" zero:"a share by weight; remove the pool if it has no nodes"`
	Weight float64 `yaml:"weight,omitempty" zero:"1"` // weight among the pools without a count, default 1
	CPU    string  `yaml:"cpu,omitempty"`             // allocatable CPU of each node, default nodes.cpu
	Memory string  `yaml:"memory,omitempty"`          // allocatable memory of each node, default nodes.memory
	// Pods: maximum number of pods on each node, default nodes.pods
	Pods int `yaml:"pods,omitempty" zero:"same as nodes"`
	// Devices: number of devices on each node, default nodes.devices
	Devices int `yaml:"devices,omitempty" zero:"same as nodes"`
	// Resources: extended resources and huge pages of each node, such as {example.com/fpga: 4}
	Resources map[string]string `yaml:"resources,omitempty"`
	Labels    map[string]string `yaml:"labels,omitempty"` // labels of the nodes
	// Taints: taints of the nodes; of all pods of deploy actions, only the pods of DaemonSets tolerate them
	Taints []NodeTaint `yaml:"taints,omitempty"`
	Zones  []string    `yaml:"zones,omitempty"`  // names of the nodes' zones, default the zones of nodes.zones
	Images []string    `yaml:"images,omitempty"` // images that the nodes need not pull, named as in pods
	// ObjectSize: size of each Node object, default nodes.objectSize
	ObjectSize Bytes `yaml:"objectSize,omitempty" zero:"same as nodes"`
}

// NodeTaint is a taint of a node.
type NodeTaint struct {
	Key    string `yaml:"key"`             // such as example.com/fpga
	Value  string `yaml:"value,omitempty"` // may be empty
	Effect string `yaml:"effect"`          // "NoSchedule", "PreferNoSchedule" or "NoExecute"
}

// Text describes how the nodes of a pool differ from other nodes: their labels, taints, zones and resources.
func (p *NodePool) Text() string {
	var parts []string
	for _, key := range slices.Sorted(maps.Keys(p.Labels)) {
		parts = append(parts, "label "+key+"="+p.Labels[key])
	}
	for _, t := range p.Taints {
		parts = append(parts, "taint "+t.Key+"="+t.Value+":"+t.Effect)
	}
	if len(p.Zones) > 0 {
		parts = append(parts, "zones "+strings.Join(p.Zones, " "))
	}
	for _, name := range slices.Sorted(maps.Keys(p.Resources)) {
		parts = append(parts, p.Resources[name]+" "+name)
	}
	return strings.Join(append([]string{"pool " + p.Name}, parts...), ", ")
}

func (p *NodePool) setDefaults(n *Nodes) {
	orDefault(&p.CPU, n.CPU)
	orDefault(&p.Memory, n.Memory)
	orDefault(&p.Pods, n.Pods)
	orDefault(&p.Devices, n.Devices)
	orDefault(&p.ObjectSize, n.ObjectSize)
	if p.Count == 0 {
		orDefault(&p.Weight, 1)
	}
}

// repels reports whether a taint keeps pods without a matching toleration off the nodes.
func (p *NodePool) repels() bool {
	return slices.ContainsFunc(p.Taints, func(t NodeTaint) bool { return t.Effect != string(corev1.TaintEffectPreferNoSchedule) })
}

// AdminLabels returns the labels that a kubelet may not set on its own Node (admission plugin NodeRestriction).
func (p *NodePool) AdminLabels() map[string]string {
	all := maps.Clone(p.Labels)
	maps.DeleteFunc(all, func(key, _ string) bool {
		prefix, _, _ := strings.Cut("."+key, "/")
		return !strings.HasSuffix(prefix, ".kubernetes.io") && !strings.HasSuffix(prefix, ".k8s.io") || kubelet.IsKubeletLabel(key)
	})
	return all
}

// HasAdminLabels reports whether a pool has labels that a kubelet may not set.
func (n *Nodes) HasAdminLabels() bool {
	return slices.ContainsFunc(n.Pools, func(p NodePool) bool { return len(p.AdminLabels()) > 0 })
}

// AllPools returns the pools with their defaults and with Count set to the number of their nodes. It adds a pool
// without a name for nodes that are in no pool. The shares of pools by weight are exact to within one node.
func (n *Nodes) AllPools() []NodePool {
	all := slices.Clone(n.Pools)
	rest, weights := n.Count, 0.0
	for i := range all {
		p := &all[i]
		p.setDefaults(n)
		rest -= p.Count
		if p.Count == 0 {
			weights += p.Weight
		}
	}
	rest = max(0, rest)
	if weights == 0 {
		if rest > 0 || len(all) == 0 {
			one := NodePool{Count: rest}
			one.setDefaults(n)
			all = append(all, one)
		}
		return all
	}
	left := rest
	var lacking []int // pools without a count; first the pool that lost most by rounding down
	lacks := make([]float64, len(all))
	for i := range all {
		if p := &all[i]; p.Count == 0 {
			share := float64(rest) * p.Weight / weights
			p.Count = int(share)
			left -= p.Count
			lacks[i] = share - float64(p.Count)
			lacking = append(lacking, i)
		}
	}
	slices.SortStableFunc(lacking, func(i, j int) int { return -cmp.Compare(lacks[i], lacks[j]) })
	for _, i := range lacking[:min(left, len(lacking))] {
		all[i].Count++
	}
	return all
}

// PoolsFor returns the pools whose nodes accept pods of a workload kind. Only DaemonSets tolerate the taints of pools.
func (n *Nodes) PoolsFor(kind string) []NodePool {
	return slices.DeleteFunc(n.AllPools(), func(p NodePool) bool { return kind != DaemonSet && p.repels() })
}

// Taints returns the taints of all pools.
func (n *Nodes) Taints() (all []NodeTaint) {
	for _, p := range n.Pools {
		for _, t := range p.Taints {
			if !slices.Contains(all, t) {
				all = append(all, t)
			}
		}
	}
	return all
}

func (v *validator) pools() {
	n, seen, sum := v.s.Nodes, map[string]bool{}, 0
	for i, p := range n.Pools {
		path := fmt.Sprintf("nodes.pools[%d]", i)
		v.uniqueName(path, "pool", p.Name, seen)
		v.between(path+".count", float64(p.Count), 0, MaxNodes)
		switch sum += p.Count; {
		case p.Count == 0:
			v.weight(path+".weight", p.Weight)
		case p.Weight != 0:
			v.fail(path+".weight", "leave it out", "this field has no effect in a pool with a count")
		}
		if sum > n.Count && sum-p.Count <= n.Count {
			v.fail(path+".count", "increase nodes.count, or use smaller pools", "the pools have more than the %d nodes of nodes.count", n.Count)
		}
		if p.CPU == n.CPU { // nodes checks it
			p.CPU = ""
		}
		if p.Memory == n.Memory {
			p.Memory = ""
		}
		if p.Devices == n.Devices {
			p.Devices = 0
		}
		if p.ObjectSize == n.ObjectSize {
			p.ObjectSize = 0
		}
		v.nodeSize(path, p.CPU, p.Memory, p.Pods, p.Devices, p.ObjectSize)
		for _, name := range slices.Sorted(maps.Keys(p.Resources)) {
			v.nodeResource(path+".resources", name, p.Resources[name])
		}
		for _, key := range slices.Sorted(maps.Keys(p.Labels)) {
			v.nodeLabel(path+".labels", key, p.Labels[key])
		}
		for j, t := range p.Taints {
			at := fmt.Sprintf("%s.taints[%d]", path, j)
			if len(validation.IsQualifiedName(t.Key))+len(validation.IsValidLabelValue(t.Value)) > 0 {
				v.fail(at, "for example {key: example.com/gpu, effect: NoSchedule}", "key %q with value %q is not valid", t.Key, t.Value)
			}
			v.oneOf(at+".effect", t.Effect, "NoSchedule", "PreferNoSchedule", "NoExecute")
			if slices.ContainsFunc(p.Taints[:j], func(o NodeTaint) bool { return o.Key == t.Key && o.Effect == t.Effect }) {
				v.fail(at, "remove one", "the pool has another taint with key %q and effect %s", t.Key, t.Effect)
			}
		}
		for j, zone := range p.Zones {
			if at := fmt.Sprintf("%s.zones[%d]", path, j); zone == "" || len(validation.IsValidLabelValue(zone)) > 0 {
				v.fail(at, "for example zone-0", "%q is not a zone", zone)
			}
		}
		for j, image := range p.Images {
			if image == "" || strings.ContainsAny(image, " \t\n") {
				v.fail(fmt.Sprintf("%s.images[%d]", path, j), "for example registry.k8s.io/pause:3.10", "%q is not the name of an image", image)
			}
		}
	}
}

func (v *validator) label(path, hint, key, value string) {
	if len(validation.IsQualifiedName(key))+len(validation.IsValidLabelValue(value)) > 0 {
		v.fail(path, hint, "%q: %q is not a label", key, value)
	}
}

// nodeLabel checks a label of a pool. It refuses labels that the field zones or the run sets.
func (v *validator) nodeLabel(path, key, value string) {
	switch {
	case key == corev1.LabelTopologyZone:
		v.fail(path, "write zones: ["+value+"]", "the field zones sets the label %s", key)
	case slices.Contains(fixedLabels(), key), strings.HasPrefix(key, "stormglass.dev/"):
		v.fail(path, "leave it out", "the label %s is set by the run", key)
	default:
		v.label(path, "for example {example.com/team: blue}", key, value)
	}
}

// nodeResource checks an extended resource or a size of huge pages.
func (v *validator) nodeResource(path, name, value string) {
	group, _, extended := strings.Cut(name, "/")
	extended = extended && group != "kubernetes.io" && !strings.HasSuffix(group, ".kubernetes.io") && len(validation.IsQualifiedName(name)) == 0
	if !extended && !strings.HasPrefix(name, corev1.ResourceHugePagesPrefix) {
		v.fail(path, "for example {example.com/fpga: 4, hugepages-2Mi: 1Gi}", "%q is not an extended resource", name)
		return
	}
	v.quantity(path+"."+name, value, func(q resource.Quantity) {
		if q.Sign() < 0 || q.MilliValue()%1000 != 0 {
			v.fail(path+"."+name, "for example 4", "%s is not a whole number", value)
		}
	})
}

// labels lists the labels that distinguish or select simulated nodes.
func (n *Nodes) labels() []string {
	all := append(fixedLabels(), corev1.LabelTopologyZone)
	for _, p := range n.Pools {
		all = append(all, corev1.LabelInstanceTypeStable)
		all = slices.AppendSeq(all, maps.Keys(p.Labels))
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// fixedLabels lists the labels that each simulated node has and that no pool can change.
func fixedLabels() []string {
	return []string{corev1.LabelHostname, corev1.LabelOSStable, corev1.LabelArchStable, "beta.kubernetes.io/os", "beta.kubernetes.io/arch"}
}
