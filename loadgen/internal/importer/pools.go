package importer

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation"
)

// nodePool is a pool of simulated nodes on which imported pods can run.
type nodePool struct {
	labels    map[string]string
	without   map[string][]string // label values that the nodes must not have; anyValue means that the label must not exist
	resources map[string]nodeResource
	need      need
}

// nodeResource holds the amounts of an extended resource or of huge pages that all pods request and that the largest
// pod requests.
type nodeResource struct{ total, largest float64 }

const anyValue = "*"

// require adds a requirement to the pool. It returns false if the nodes of the pool cannot meet it.
func (p *nodePool) require(r corev1.NodeSelectorRequirement) bool {
	have, set := p.labels[r.Key]
	denies := func(value string) bool {
		return slices.Contains(p.without[r.Key], value) || slices.Contains(p.without[r.Key], anyValue)
	}
	use := func(value string) bool {
		valid := len(validation.IsQualifiedName(r.Key))+len(validation.IsValidLabelValue(value)) == 0
		if !valid || denies(value) || strings.HasPrefix(r.Key, "stormglass.dev/") {
			return false
		}
		p.labels[r.Key] = value
		return true
	}
	switch r.Key {
	case corev1.LabelOSStable, "beta.kubernetes.io/os":
		have, set = "linux", true
	case corev1.LabelArchStable, "beta.kubernetes.io/arch":
		return true // known only when the scenario runs
	case corev1.LabelHostname, "metadata.name":
		return r.Operator == "Exists" || r.Operator == "NotIn"
	}
	switch r.Operator {
	case "In":
		return set && slices.Contains(r.Values, have) || !set && slices.ContainsFunc(r.Values, use)
	case "Exists":
		return set || use("")
	case "NotIn", "DoesNotExist":
		if r.Operator == "DoesNotExist" {
			r.Values = []string{anyValue}
		}
		if set {
			return r.Operator == "NotIn" && !slices.Contains(r.Values, have)
		}
		p.without[r.Key] = slices.Concat(p.without[r.Key], r.Values)
		return true
	case "Gt", "Lt":
		by := 1
		if r.Operator == "Lt" {
			by = -1
		}
		bound, err := strconv.Atoi(strings.Join(r.Values, ""))
		n, no := strconv.Atoi(have)
		return err == nil && (set && no == nil && (n-bound)*by > 0 || !set && bound+by >= 0 && use(strconv.Itoa(bound+by)))
	}
	return false
}

// nodeTerms returns the node requirements of a pod spec. A node must meet all requirements of at least one term.
func (m manifest) nodeTerms() (terms [][]corev1.NodeSelectorRequirement) {
	var all []corev1.NodeSelectorRequirement
	for key, value := range m.at("nodeSelector") {
		all = append(all, corev1.NodeSelectorRequirement{Key: key, Operator: "In", Values: []string{fmt.Sprint(value)}})
	}
	required := m.at("affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution")
	var of corev1.NodeSelector
	_ = runtime.DefaultUnstructuredConverter.FromUnstructured(required, &of) // the validation of the scenario reports an error
	for _, t := range of.NodeSelectorTerms {
		terms = append(terms, slices.Concat(all, t.MatchExpressions, t.MatchFields))
	}
	if required == nil && len(all) > 0 {
		terms = append(terms, all)
	}
	return terms
}

// nodeResources returns the extended resources and huge pages that a pod requests.
func (m manifest) nodeResources() map[string]float64 {
	all := map[string]float64{}
	for _, c := range m.list("containers", "initContainers") {
		limits := c.at("resources", "limits")
		for name := range limits {
			group, _, extended := strings.Cut(name, "/")
			extended = extended && !strings.HasSuffix("."+group, ".kubernetes.io") && len(validation.IsQualifiedName(name)) == 0
			if extended || strings.HasPrefix(name, corev1.ResourceHugePagesPrefix) {
				all[name] += quantity(limits[name])
			}
		}
	}
	return all
}

// place adds the requirements of an object's pods to the pools. spec is the pod spec, and pods is what all these pods
// need. place returns false if no pool can have matching nodes.
func (d *draft) place(spec manifest, pods need) bool {
	terms, resources := spec.nodeTerms(), spec.nodeResources()
	if len(terms) == 0 && len(resources) == 0 {
		return true
	}
	if len(terms) == 0 {
		terms = [][]corev1.NodeSelectorRequirement{nil}
	}
	fresh := &nodePool{map[string]string{}, map[string][]string{}, map[string]nodeResource{}, need{}}
	for i, old := range append(slices.Clone(d.pools), fresh) {
		for _, term := range terms {
			p := &nodePool{maps.Clone(old.labels), maps.Clone(old.without), maps.Clone(old.resources), old.need}
			if slices.ContainsFunc(term, func(r corev1.NodeSelectorRequirement) bool { return !p.require(r) }) {
				continue
			}
			for name, amount := range resources {
				has := p.resources[name]
				p.resources[name] = nodeResource{has.total + amount*max(1, pods.pods), max(has.largest, amount)}
			}
			p.need = p.need.plus(pods)
			d.pools = slices.Replace(d.pools, i, min(i+1, len(d.pools)), p)
			return true
		}
	}
	return false
}

// addPools writes the number of nodes and their pools. Each pool gets at least one node and, unless the options set the
// number of nodes, as many as its pods need.
func (d *draft) addPools(count int) {
	if d.options.OwnCluster {
		return
	}
	sum := 0
	for _, p := range d.pools {
		sum += max(1, p.need.nodeCount())
	}
	if count = max(count, len(d.pools)); d.options.Nodes == 0 {
		count = max(count, sum)
	}
	d.nodes = newMapping()
	d.nodes.set("count", count)
	if len(d.pools) == 1 && len(d.pools[0].labels)+len(d.pools[0].resources) == 0 {
		return
	}
	var all []*mapping
	names := map[string]bool{}
	for _, p := range d.pools {
		weight := max(1, p.need.nodeCount())
		m := block("name", unique(p.name(), names), "weight", when(len(d.pools) > 1, weight))
		if zone := p.labels[corev1.LabelTopologyZone]; zone != "" {
			m.set("zones", []string{zone})
			delete(p.labels, corev1.LabelTopologyZone)
		}
		each := map[string]string{}
		for name, r := range p.resources {
			nodes := max(1, float64(count*weight/sum))
			each[name] = strconv.FormatFloat(r.largest*max(1, math.Ceil(r.total/max(r.largest, 1)/nodes)+1), 'f', -1, 64)
		}
		all = append(all, m.add("labels", p.labels, "resources", each))
	}
	if len(all) > 0 {
		addComment(d.nodes.set("pools", all), "nodes as the node selectors, node affinity and extended resources of the pods require")
	}
}

// name derives a name for the pool from one of its labels, if possible one without a value. Without labels, it uses a
// resource.
func (p *nodePool) name() string {
	keys := slices.Concat(sortedKeys(p.labels), sortedKeys(p.resources))
	if len(keys) == 0 {
		return "others"
	}
	role := func(key string) bool { value, is := p.labels[key]; return is && value == "" }
	key := keys[max(0, slices.IndexFunc(keys, role))]
	return nameOf(cmp.Or(strings.Trim(p.labels[key], "0123456789."), key[strings.LastIndexByte(key, '/')+1:]))
}

// problems adds the pods of an object to the node pools. It returns the reasons why the object or its pods do not work
// as intended on a bundled control plane. `unserved` is such a reason, or empty. unbound means that the object's volume
// claims stay unbound, which is another reason.
func (d *draft) problems(m manifest, pods need, unserved string, unbound bool) (all []string) {
	if d.options.OwnCluster {
		return nil
	}
	say := func(is bool, format string, args ...any) {
		if is {
			all = append(all, fmt.Sprintf(format, args...))
		}
	}
	exists := func(kind, name string) bool {
		return slices.ContainsFunc(d.made, func(o madeObjects) bool { return o.kind() == kind && o.name() == name })
	}
	say(unserved != "", "%s", unserved)
	say(unserved == "" && pods.claims && unbound, "a bundled control plane provisions no volumes: claims, and pods with them, stay Pending")
	for _, key := range namespaceLabels(m) {
		say(!d.namespaceLabels[key] && key != corev1.LabelMetadataName, "namespaceSelector: the run's namespaces have no label %s", key)
	}
	at := podSpec(m.kind())
	if at == nil {
		return all
	}
	spec := m.at(at...)
	node, scheduler, class, priority := spec.text("nodeName"), spec.text("schedulerName"), spec.text("runtimeClassName"), spec.text("priorityClassName")
	own := scheduler != "" && scheduler != corev1.DefaultSchedulerName
	if own && !slices.Contains(d.schedulers, scheduler) {
		d.schedulers = append(d.schedulers, scheduler)
	}
	say(!d.place(spec, pods), "no simulated node can match nodeSelector and nodeAffinity: its pods stay Pending")
	say(node != "", "nodeName %s: no simulated node has this name, and its pods never start", node)
	say(own, "schedulerName %s: kube-scheduler schedules its pods, by a profile of this name with the default plugins", scheduler)
	say(len(asList(spec["resourceClaims"])) > 0,
		"resourceClaims: simulated nodes have only devices of driver gpu.stormglass.dev: its pods stay Pending unless their DeviceClass selects these")
	say(len(asList(spec["schedulingGates"])) > 0, "schedulingGates: no controller removes the gates: its pods stay Pending")
	say(class != "" && !exists("RuntimeClass", class),
		"runtimeClassName %s: the API server refuses its pods, because no earlier object is this RuntimeClass", class)
	say(priority != "" && !strings.HasPrefix(priority, "system-") && !exists("PriorityClass", priority),
		"priorityClassName %s: the API server refuses its pods, because no earlier object is this PriorityClass", priority)
	return all
}

// namespaceLabels returns the keys of the labels that the namespace selectors in an object require.
func namespaceLabels(m manifest) (keys []string) {
	m.each(func(m manifest) {
		selector := m.at("namespaceSelector")
		keys = append(keys, sortedKeys(selector.at("matchLabels"))...)
		for _, e := range selector.list("matchExpressions") {
			if operator := e.text("operator"); operator == "In" || operator == "Exists" {
				keys = append(keys, e.text("key"))
			}
		}
	})
	return keys
}
