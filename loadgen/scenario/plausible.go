package scenario

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/stormglass/stormglass/internal/strictyaml"
)

// minPhase is the shortest phase: scrapes are no closer together.
const minPhase = time.Second

// course is how the workload and the nodes stand as phases go by, as far as it is
// known before the run.
type course struct {
	v     *validator
	alive map[string]*placed // Deployments by name
	// restless: something was done to pods or nodes since they were last awaited.
	restless bool
	down     int  // nodes that failed and were not brought back
	struck   bool // nodes failed or became slow, and were not brought back
	hopeless bool // some pods were found never to become ready
}

// placed is a Deployment, where it stands, and the phase of the last action on it.
type placed struct {
	Action
	path  string
	since int
}

// course checks what can be told on paper: conditions that hold at once or never,
// pods that no node holds, faults without their target. That nodesReady holds at
// once is no error: large fleets fall back while they register.
func (v *validator) course() {
	c := &course{v: v, alive: map[string]*placed{}}
	for i := range v.s.Phases {
		p := &v.s.Phases[i]
		path := fmt.Sprintf("phases[%d]", i)
		for field, d := range map[string]Duration{"for": p.For, "within": p.Within} {
			if d != 0 && d.D() < minPhase {
				v.fail(path+"."+field, fmt.Sprintf("from %s to 24h", minPhase), "%s is out of bounds", d)
			}
		}
		for j := range p.Actions {
			c.act(fmt.Sprintf("%s.actions[%d]", path, j), i, &p.Actions[j])
		}
		c.strike(path, p)
		switch p.Until {
		case "podsReady":
			c.awaitPods(path, i, p)
		case "nodesNotReady":
			c.awaitNotReady(path, p)
		}
		c.opening(path, p)
		c.bursts(path, p)
	}
	c.loads()
}

func (c *course) act(path string, phase int, a *Action) {
	c.restless = true
	d := c.alive[a.Name]
	switch {
	case a.Kind == "deploy" && d != nil:
		c.v.fail(path+".name", "scale it, or give this one another name", "%q is deployed already", a.Name)
	case a.Kind == "deploy":
		c.alive[a.Name] = &placed{*a, path, phase}
		c.checkSpread(path, a)
	case d == nil: // validator.action says so
	case a.Kind == "delete":
		delete(c.alive, a.Name)
	case a.Kind == "scale":
		d.Replicas, d.path, d.since = a.Replicas, path, phase
	case a.Kind == "rollingUpdate":
		d.since = phase
	}
}

// nodeLabels are those by which simulated nodes differ or are found.
func (c *course) nodeLabels() []string {
	all := []string{corev1.LabelHostname, corev1.LabelTopologyZone, corev1.LabelOSStable, corev1.LabelArchStable, "beta.kubernetes.io/os", "beta.kubernetes.io/arch"}
	if len(c.v.s.Nodes.Shapes) > 0 {
		all = append(all, corev1.LabelInstanceTypeStable)
	}
	return all
}

func (c *course) checkSpread(path string, a *Action) {
	known := c.nodeLabels()
	for i, t := range a.TopologySpread {
		if t.Key == "" || slices.Contains(known, t.Key) || strings.HasPrefix(t.Key, "stormglass.dev/") {
			continue
		}
		hint := "nodes have " + strings.Join(known, ", ")
		for _, label := range known {
			if strings.HasSuffix(label, "/"+t.Key) {
				hint = fmt.Sprintf("did you mean %q?", label)
				break
			}
		}
		if near := strictyaml.Suggest(t.Key, known); near != "" {
			hint = fmt.Sprintf("did you mean %q?", near)
		}
		c.v.fail(fmt.Sprintf("%s.topologySpread[%d].key", path, i), hint, "no simulated node has the label %q", t.Key)
	}
}

// strike follows the faults of a phase in the order of their times.
func (c *course) strike(path string, p *Phase) {
	nodes := c.v.s.Nodes.Count
	order := make([]int, len(p.Faults))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(i, j int) int { return int(p.Faults[i].After - p.Faults[j].After) })
	for _, i := range order {
		f := &p.Faults[i]
		at := fmt.Sprintf("%s.faults[%d]", path, i)
		c.restless = true
		if !f.OfNodes() || nodes == 0 {
			continue
		}
		if f.Kind == NodeRecovery {
			if !c.struck {
				c.v.fail(at, "put it after a nodeFailure, nodeShutdown or slowKubelet", "no node has failed by then")
			}
			c.down, c.struck = 0, false
			continue
		}
		c.struck = true
		n := int(f.Fraction*float64(nodes) + 0.5) // as package node counts them
		switch {
		case f.Fraction > 0 && n == 0:
			c.v.fail(at+".fraction", fmt.Sprintf("at least %s, which is one node", plain(math.Ceil(1e5/float64(nodes))/1e5)), "%s of %d nodes is none", plain(f.Fraction), nodes)
		case f.StopsNodes() && c.down >= nodes:
			c.v.fail(at, "add a nodeRecovery before it", "all nodes have failed by then")
		case f.StopsNodes():
			c.down = min(nodes, c.down+n)
		}
	}
}

// awaitPods checks that pods can become ready in the phase, and that they are not.
func (c *course) awaitPods(path string, phase int, p *Phase) {
	at := path + ".until"
	nodes := c.v.s.Nodes
	switch {
	case len(c.alive) == 0:
		c.v.fail(at, "add actions: [{kind: deploy, name: web, replicas: 100}], or write for: 30s", "podsReady holds at once: nothing is deployed by phase %q", p.Name)
	case nodes.Count == 0:
		c.v.fail(at, "set nodes.count", "podsReady never holds: there are no simulated nodes to run pods")
	case c.hopeless: // said once
	case c.down >= nodes.Count:
		c.v.fail(at, "add a nodeRecovery before", "podsReady never holds: all nodes have failed")
	case !c.restless:
		c.v.fail(at, "write for: 30s, or add actions or faults", "podsReady holds at once: nothing was done since pods were last awaited")
	default:
		before := len(c.v.errs)
		c.capacity()
		c.starting(phase, p)
		c.hopeless = len(c.v.errs) > before
	}
	c.restless = false
}

// starting checks that pods have the time that their nodes take to start them.
func (c *course) starting(phase int, p *Phase) {
	takes := c.v.s.Nodes.PodStart.Median + c.v.s.Nodes.ImagePull.Median
	for _, name := range slices.Sorted(maps.Keys(c.alive)) {
		since := time.Duration(0)
		for i := c.alive[name].since; i <= phase; i++ {
			since += max(c.v.s.Phases[i].For, c.v.s.Phases[i].Within).D()
		}
		if c.alive[name].Replicas > 0 && takes > since {
			c.v.fail("nodes.podStart", fmt.Sprintf("write less than %s, imagePull counted in, or make the phase longer", Duration(since)),
				"pods take %s to start, and phase %q is over after %s at most", Duration(takes), p.Name, Duration(since))
			return
		}
	}
}

// room is a kind of node and how many there are of it, at most.
type room struct {
	count, pods int64
	cpu, memory int64 // in thousandths
}

func (c *course) rooms() []room {
	n := c.v.s.Nodes
	shapes := n.Shapes
	if len(shapes) == 0 {
		shapes = []NodeShape{{Weight: 1, CPU: n.CPU, Memory: n.Memory, Pods: n.Pods}}
	}
	weights := 0.0
	for _, s := range shapes {
		weights += s.Weight
	}
	var all []room
	for _, s := range shapes {
		count := math.Ceil(float64(n.Count-c.down) * s.Weight / weights)
		all = append(all, room{int64(count), int64(s.Pods), milli(s.CPU), milli(s.Memory)})
	}
	return all
}

// milli is a quantity in thousandths, 0 for one that is none.
func milli(text string) int64 {
	q, err := resource.ParseQuantity(text)
	if err != nil {
		return 0
	}
	return q.MilliValue()
}

// capacity refuses Deployments that the nodes cannot hold.
func (c *course) capacity() {
	var pods, cpu, memory float64
	var last *placed
	rooms := c.rooms()
	for _, name := range slices.Sorted(maps.Keys(c.alive)) {
		d := c.alive[name]
		if c.tooLarge(d, rooms) {
			return
		}
		n := float64(d.Replicas)
		pods, cpu, memory = pods+n, cpu+n*float64(milli(d.CPU)), memory+n*float64(milli(d.Memory))
		if last == nil || d.since >= last.since {
			last = d
		}
	}
	var all room
	for _, r := range rooms {
		all.pods += r.count * r.pods
		all.cpu += r.count * r.cpu
		all.memory += r.count * r.memory
	}
	for _, of := range []struct {
		what       string
		asked, has float64
		unit       float64
	}{
		{"pods", pods, float64(all.pods), 1}, {"CPUs", cpu, float64(all.cpu), 1000}, {"bytes of memory", memory, float64(all.memory), 1000},
	} {
		if of.asked > of.has {
			c.v.fail(last.path+".replicas", "fewer pods, or more or larger nodes",
				"the pods of all Deployments need %s %s, and the nodes have %s", plain(of.asked/of.unit), of.what, plain(of.has/of.unit))
			return
		}
	}
}

// tooLarge tells of a Deployment that the nodes would not hold if it were alone.
func (c *course) tooLarge(d *placed, rooms []room) bool {
	var fit, largestCPU, largestMemory int64
	each := room{cpu: math.MaxInt64, memory: math.MaxInt64} // what every node has, and how many there are
	for _, r := range rooms {
		n := r.pods
		if cpu := milli(d.CPU); cpu > 0 {
			n = min(n, r.cpu/cpu)
		}
		if memory := milli(d.Memory); memory > 0 {
			n = min(n, r.memory/memory)
		}
		if d.AntiAffinity == "required" {
			n = min(n, 1)
		}
		fit += r.count * n
		largestCPU, largestMemory = max(largestCPU, r.cpu), max(largestMemory, r.memory)
		each.count, each.cpu, each.memory = each.count+r.count, min(each.cpu, r.cpu), min(each.memory, r.memory)
	}
	n := c.v.s.Nodes
	share := (int64(d.Replicas) + each.count - 1) / max(each.count, 1) // pods of each node
	switch {
	case int64(d.Replicas) <= fit:
		return false
	case milli(d.CPU) > largestCPU:
		c.v.fail(d.path+".cpu", roomHint("nodes.cpu", each.cpu/max(share, 1), "m"), "no node holds a pod of %s CPUs", d.CPU)
	case milli(d.Memory) > largestMemory:
		c.v.fail(d.path+".memory", roomHint("nodes.memory", each.memory/max(share, 1)/1000>>10, "Ki"), "no node holds a pod of %s", d.Memory)
	case d.AntiAffinity == "required":
		c.v.fail(d.path+".antiAffinity", fmt.Sprintf("write preferred, or at most %d replicas", fit), "required puts one pod on a node, and there are %d pods for %d nodes", d.Replicas, n.Count-c.down)
	default:
		c.v.fail(d.path+".replicas", fmt.Sprintf("at most %d, or more or larger nodes", fit), "%d pods of %q are more than %d nodes hold", d.Replicas, d.Name, n.Count-c.down)
	}
	return true
}

// roomHint says how much a pod may ask for.
func roomHint(field string, most int64, unit string) string {
	if most <= 0 {
		return "write a larger " + field
	}
	return fmt.Sprintf("at most %d%s for so many pods, or a larger %s", most, unit, field)
}

// gracePeriod is the controller manager's --node-monitor-grace-period.
func (s *Scenario) gracePeriod() time.Duration {
	if d, err := time.ParseDuration(s.ControlPlane.ControllerManager.Flags["node-monitor-grace-period"]); err == nil {
		return d
	}
	return 50 * time.Second // upstream's default
}

// awaitNotReady checks that nodes that fail in the phase can be seen so in it.
func (c *course) awaitNotReady(path string, p *Phase) {
	var first *Fault
	for i := range p.Faults {
		if f := &p.Faults[i]; f.Kind == NodeShutdown || f.Kind == NodeFailure && (first == nil || f.After < first.After) {
			first = f
		}
	}
	if first == nil || first.Kind == NodeShutdown {
		return // failed before, or says so itself
	}
	soonest := first.After.D() + c.v.s.gracePeriod() - c.v.s.Nodes.LeaseRenew.D()
	if c.v.s.gracePeriod() > 0 && p.Within.D() < soonest {
		c.v.fail(path+".within", fmt.Sprintf("at least %s; the flag node-monitor-grace-period of the controller manager is %s", Duration(soonest+c.v.s.Nodes.LeaseRenew.D()+10*time.Second), Duration(c.v.s.gracePeriod())),
			"nodesNotReady never holds: a failed node is noticed after %s at the soonest", Duration(soonest))
	}
}

// opening checks that watches that are awaited have the time to open at their rate.
func (c *course) opening(path string, p *Phase) {
	length := p.Within.D()
	if p.Until != "watchesOpen" || length == 0 {
		return
	}
	for j := range p.Load {
		l := &p.Load[j]
		if l.Kind != "watches" || l.Shape.Kind != "" || l.Rate <= 0 || l.Count < 1 {
			continue
		}
		if takes := float64(l.Count-1) / float64(l.Rate); takes > length.Seconds() {
			c.v.fail(fmt.Sprintf("%s.load[%d].rate", path, j), fmt.Sprintf("at least %d/s", int(math.Ceil(float64(l.Count)/length.Seconds()))),
				"%d watches at %s are open after %s, and the phase lasts at most %s", l.Count, l.Rate, Duration(time.Duration(takes*float64(time.Second)).Round(time.Second)), Duration(length))
		}
	}
}

// bursts checks that a load of bursts has one in its phase.
func (c *course) bursts(path string, p *Phase) {
	length := max(p.For, p.Within)
	for j, l := range p.Load {
		if l.Shape.Kind == "burst" && length > 0 && l.Shape.Every >= length {
			c.v.fail(fmt.Sprintf("%s.load[%d].shape.every", path, j), fmt.Sprintf("less than %s", length), "the first burst comes after %s, and the phase is over by then", l.Shape.Every)
		}
	}
}

// StartsPods lists the phases in which pods may start: those with a Deployment and
// something done to pods or nodes since pods were last awaited.
func (s *Scenario) StartsPods() []string {
	var all []string
	alive := map[string]bool{}
	restless := false
	for i := range s.Phases {
		p := &s.Phases[i]
		restless = restless || len(p.Actions) > 0 || len(p.Faults) > 0
		for _, a := range p.Actions {
			if alive[a.Name] = a.Kind != "delete"; !alive[a.Name] {
				delete(alive, a.Name)
			}
		}
		if restless && len(alive) > 0 {
			all = append(all, p.Name)
		}
		restless = restless && p.Until != "podsReady"
	}
	return all
}

// unserved lists the resources that only a cluster with their definitions serves.
func (s *Scenario) unserved() []string {
	var all []string
	for _, l := range s.Loads() {
		for i, o := range l.Operations() {
			path := l.Path + ".resource"
			if len(l.Mix) > 0 {
				path = fmt.Sprintf("%s.mix[%d].resource", l.Path, i)
			}
			if l.Kind != "changes" && o.Resource != "" && o.Resource != WidgetResource && custom(o.Resource) {
				all = append(all, s.Errorf(path, "run it with --kubeconfig, against a cluster with its definition", "%s is no resource of Kubernetes: the bundled control plane has none", o.Resource).Error())
			}
		}
	}
	return all
}
