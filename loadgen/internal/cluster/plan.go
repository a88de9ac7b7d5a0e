package cluster

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/stormglass/stormglass/controlplane/control"
	"github.com/stormglass/stormglass/internal/digits"
	"github.com/stormglass/stormglass/loadgen/internal/plan"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

// Plan lists what a run will create on a target, for the user to confirm.
type Plan struct {
	Scenario, RunID          string
	Cluster, Server, Version string
	Namespace                string
	MoreNamespaces           int // number of additional namespaces for the objects of loads
	// Groups contains the namespaces of each namespace group.
	Groups                   [][]string
	Nodes                    int
	Pools                    []string // descriptions of the node pools, each with its number of nodes
	Identity                 string   // how each node authenticates
	Fidelity, KubeletAddress string
	DeviceClass              string // name of the DeviceClass of the nodes; empty if they have no devices
	Pods, Watches            int    // maximum numbers of pods and of open watches at one time
	// Workloads counts the workloads that deploy actions create, by kind. Companions counts the objects that deploy
	// actions create along with them, such as Services.
	Workloads, Companions map[string]int
	// ByControllers counts the objects that controllers create for the workloads, by kind. Replaced is the certainty of
	// these numbers: they are not exact if controllers may replace pods.
	ByControllers map[string]int
	Replaced      plan.Certainty
	// Created are the objects that the setup and actions create.
	Created []scenario.Manifest
	// Batches describes the batches of objects that the scenario, actions and loads create, with their numbers by kind.
	Batches []string
	// Objects counts the objects that loads work on, by resource.
	Objects map[string]int
	// Rate is the highest total request rate of any phase, per second.
	Rate float64
	// Account is the ServiceAccount of the load. Role is the name of its RBAC objects. Both are empty on a bundled
	// control plane.
	Account, Role string
	// Workers describes the workers (other loadgen processes) that send the load. Empty means that the run's own process sends
	// it.
	Workers string
	// Stops are the conditions that end the run early.
	Stops []string
	// Commands are the commands that run on this machine before and after phases. Profiles describes the profiles that
	// the run takes of components.
	Commands, Profiles []string
	Notes              []string
	// Tainted means that the nodes accept only pods that tolerate their taint.
	Tainted bool
}

// Plan returns what the run will create on the target.
func (t *Target) Plan() Plan {
	s := t.plan
	p := Plan{
		Scenario: s.Name, RunID: t.runID,
		Cluster: t.Cluster.Name, Server: t.Cluster.Server, Version: t.KubernetesVersion,
		Namespace: t.Namespace, MoreNamespaces: len(t.namespaces) - 1, Nodes: s.Nodes.Count, Fidelity: s.Nodes.Fidelity, KubeletAddress: s.Nodes.KubeletAddress, DeviceClass: t.DeviceClass(),
		Created: s.Manifests(), Notes: t.Notes, Tainted: len(t.Taints()) > 0,
	}
	if len(s.Nodes.Pools) > 0 {
		for _, pool := range s.Nodes.AllPools() {
			if pool.Name != "" {
				p.Pools = append(p.Pools, fmt.Sprintf("%s of these nodes in %s", number(float64(pool.Count)), pool.Text()))
			}
		}
	}
	for i := range s.Namespaces {
		p.Groups = append(p.Groups, s.Namespaces[i].Names())
		p.MoreNamespaces -= len(p.Groups[i])
	}
	p.Identity = t.identityText(s)
	if t.credentials.tokens {
		p.Notes = slices.Concat(p.Notes, []string{t.credentials.String()})
	}
	if !t.Cluster.Bundled {
		p.Account, p.Role = loadAccount, t.Namespace
	}
	for _, h := range s.Hooks {
		p.Commands = append(p.Commands, h.String())
	}
	for _, pr := range s.Profiles() {
		p.Profiles = append(p.Profiles, fmt.Sprintf("%s of %s in phase %s", pr.Kind, pr.Component, pr.Phase))
	}
	p.countWorkloads(s)
	p.countLoads(s)
	for _, b := range s.Batches {
		p.Batches = append(p.Batches, fmt.Sprintf("%s, of %s", b.Expanded, b.Path))
	}
	return p
}

func (p *Plan) countLoads(s *plan.Plan) {
	p.Objects = map[string]int{}
	for _, l := range s.Loads {
		for resource := range madeBy(l.Load) {
			p.Objects[resource] += l.Objects
		}
	}
	for _, peak := range s.Peaks {
		p.Rate, p.Watches = max(p.Rate, peak.Requests), max(p.Watches, peak.Watches)
	}
}

// String formats the plan as several lines for users.
func (p Plan) String() string {
	var b strings.Builder
	line := func(head, format string, args ...any) {
		fmt.Fprintf(&b, "%-9s %s\n", head, fmt.Sprintf(format, args...))
	}
	line("Run", "%s, as run %s", p.Scenario, p.RunID)
	line("On", "cluster %s (%s), Kubernetes %s", p.Cluster, p.Server, p.Version)
	namespace := "namespace " + p.Namespace
	if p.MoreNamespaces > 0 {
		namespace += fmt.Sprintf(" and %d more with this prefix,", p.MoreNamespaces)
	}
	line("Creates", "%s with %s", namespace, p.contents())
	for _, names := range p.Groups {
		if last := len(names) - 1; last > 0 {
			line("", "namespaces %s to %s", names[0], names[last])
		} else {
			line("", "namespace %s", names[0])
		}
	}
	if p.Nodes > 0 {
		how := p.Identity
		taint := "tainted so that no other pod is scheduled to them"
		if !p.Tainted {
			taint = "not tainted, because Stormglass started this control plane: any pod may be scheduled to them"
		}
		line("", "%s, %s, %s", count(p.Nodes, "simulated node"), taint, how)
		if p.KubeletAddress != "" {
			line("", "a kubelet API for each node on this machine, on %s and the following ports; it answers callers that your cluster authorizes, and executes nothing", p.KubeletAddress)
		}
	}
	for _, pool := range p.Pools {
		line("", "%s", pool)
	}
	if p.DeviceClass != "" {
		line("", "a ResourceSlice of simulated devices for each node, and DeviceClass %s for these devices", p.DeviceClass)
	}
	for _, m := range p.Created {
		line("", "%s", created(m))
	}
	for _, b := range p.Batches {
		line("", "%s", b)
	}
	if p.Account != "" {
		line("", "ServiceAccount %s for the load, ClusterRole and ClusterRoleBinding %s", p.Account, p.Role)
	}
	line("Sends", "up to %s requests/s, %s", number(p.Rate), count(p.Watches, "measured watch"))
	if p.Workers != "" {
		line("Workers", "%s", p.Workers)
	}
	for i, c := range p.Commands {
		line(map[bool]string{true: "Runs"}[i == 0], "on this machine, as you, %s", c)
	}
	if len(p.Profiles) > 0 {
		line("Profiles", "%s, if the cluster permits them", strings.Join(p.Profiles, ", "))
	}
	if len(p.Stops) > 0 {
		line("Stops", "early when %s", strings.Join(p.Stops, ", or "))
	}
	line("Removes", "all of these objects at the end; each is labelled %s=%s", RunLabel, p.RunID)
	for _, n := range p.Notes {
		line("Note", "%s", n)
	}
	return strings.TrimSuffix(b.String(), "\n")
}

func (p Plan) contents() string {
	var parts []string
	for _, some := range []map[string]int{p.Workloads, p.Companions, {"pod": p.Pods}} {
		for _, kind := range slices.Sorted(maps.Keys(some)) {
			if some[kind] > 0 {
				parts = append(parts, count(some[kind], kind))
			}
		}
	}
	for _, resource := range slices.Sorted(maps.Keys(p.Objects)) {
		parts = append(parts, fmt.Sprintf("%s %s", number(float64(p.Objects[resource])), resource))
	}
	switch {
	case len(parts) == 0 && len(p.Batches) > 0:
		return "the objects named below"
	case len(parts) == 0:
		return "no objects"
	}
	return strings.Join(parts, ", ")
}

// created describes the object or objects that the setup or an action creates, and their scope.
func created(m scenario.Manifest) string {
	text := m.String()
	if m.Count > 1 {
		text = count(m.Count, m.Kind) + " " + m.Name
	}
	switch {
	case m.Namespaced:
		return text + ", in each namespace of the run"
	case strings.HasPrefix(m.Resource.Resource, "validatingadmission"), strings.HasPrefix(m.Resource.Resource, "mutatingadmission"):
		return text + ", for the run's namespaces only"
	}
	return text + ", of the whole cluster"
}

// count returns a number and its noun, such as "1 pod" or "2,000 watches".
func count(n int, what string) string {
	switch {
	case n == 1:
		return "1 " + what
	case strings.HasSuffix(what, "ch"), strings.HasSuffix(what, "s"):
		what += "es"
	default:
		what += "s"
	}
	return number(float64(n)) + " " + what
}

func number(v float64) string {
	if v != float64(int64(v)) {
		return digits.Format(v, 3)
	}
	s := fmt.Sprint(int64(v))
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// differences returns a note that lists the control plane settings of a scenario, because a user's cluster does not get
// them. It returns nil if the scenario has no such settings.
func differences(c control.Config) []string {
	var set []string
	add := func(name string, value any, isSet bool) {
		if isSet {
			set = append(set, fmt.Sprintf("%s=%v", name, value))
		}
	}
	flags := func(component string, f control.Flags) {
		for _, name := range slices.Sorted(maps.Keys(f)) {
			add(component+" --"+name, f[name], true)
		}
	}
	add("etcd members", c.Etcd.Members, c.Etcd.Members != 0)
	add("etcd topology", c.Etcd.Topology, c.Etcd.Topology != "")
	add("kube-apiserver replicas", c.APIServer.Replicas, c.APIServer.Replicas != 0)
	add("kube-apiserver descriptors", c.APIServer.Descriptors, c.APIServer.Descriptors != 0)
	add("kube-apiserver cpus", c.APIServer.CPUs, c.APIServer.CPUs != 0)
	add("kube-controller-manager replicas", c.ControllerManager.Replicas, c.ControllerManager.Replicas != 0)
	add("kube-scheduler replicas", c.Scheduler.Replicas, c.Scheduler.Replicas != 0)
	flags("etcd", c.Etcd.Flags)
	flags("kube-apiserver", c.APIServer.Flags)
	m, s := c.ControllerManager, c.Scheduler
	add("kube-controller-manager --kube-api-qps", m.QPS, m.QPS != 0)
	add("kube-controller-manager --kube-api-burst", m.Burst, m.Burst != 0)
	flags("kube-controller-manager", m.Flags)
	add("kube-scheduler clientConnection.qps", s.QPS, s.QPS != 0)
	add("kube-scheduler clientConnection.burst", s.Burst, s.Burst != 0)
	add("kube-scheduler percentageOfNodesToScore", s.PercentageOfNodesToScore, s.PercentageOfNodesToScore != 0)
	if len(s.Config) > 0 {
		set = append(set, "kube-scheduler --config")
	}
	flags("kube-scheduler", s.Flags)
	flags("metrics-server", c.MetricsServer.Flags)
	cloud := c.CloudControllerManager
	add("cloud-controller-manager replicas", cloud.Replicas, cloud.Replicas != 0)
	add("cloud-controller-manager --kube-api-qps", cloud.QPS, cloud.QPS != 0)
	add("cloud-controller-manager --kube-api-burst", cloud.Burst, cloud.Burst != 0)
	flags("cloud-controller-manager", cloud.Flags)
	if len(set) == 0 {
		return nil
	}
	return []string{"controlPlane settings of the scenario are not applied to your cluster: " + strings.Join(set, ", ")}
}
