package scenario

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/stormglass/stormglass/internal/strictyaml"
	"github.com/stormglass/stormglass/loadgen/internal/builtin"
)

// minPhase is the minimum length of a phase. Scrapes are at least this far apart.
const minPhase = time.Second

// forecast tracks the expected state of workloads and nodes from phase to phase, to find problems before the run.
type forecast struct {
	v     *validator
	alive map[string]*placed // workloads by name
	// disturbed is true if an action or fault has affected pods or nodes since the run last waited for them.
	disturbed      bool
	podsNeverReady bool // some pods can never become ready
	fleet
}

// placed is a workload in the forecast. since is the index of the phase with the last action on it.
type placed struct {
	Action
	made    string // path of the deploy action
	path    string // path of the field that sets the replicas
	since   int
	update  *Action // last rollingUpdate of pods from an earlier phase; nil after the run has waited for the pods
	updated string  // path of update
}

// forecast reports problems that are certain before the run: conditions that hold from the start or never, pods that
// fit on no node, and faults without a target.
func (v *validator) forecast() {
	c := &forecast{v: v, alive: map[string]*placed{}}
	c.otherwiseNotReady, c.later = !v.s.registersAtOnce(), v.s.Nodes.Later
	v.heartbeats()
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
		notReady := c.mayBeNotReady(c.elapsed)
		before := len(v.errs)
		c.applyFaults(path, p)
		switch p.Until.Text {
		case "podsReady":
			c.awaitPods(path, i, p)
		case "nodesReady":
			if len(v.errs) == before { // otherwise the state of the nodes is unknown
				c.awaitReady(path, p, notReady)
			}
		case "nodesNotReady":
			c.awaitNotReady(path, p)
		}
		c.noteOtherCauses(p)
		c.elapsed += max(p.For, p.Within).D()
		c.opening(path, p)
		c.bursts(path, p)
	}
	c.loads()
}

func (c *forecast) act(path string, phase int, all *Action) {
	if all.Kind == "create" || all.OnObjects() { // the forecast does not track their pods
		return
	}
	for _, a := range all.Each() {
		c.actOnOne(path, phase, &a)
	}
}

func (c *forecast) actOnOne(path string, phase int, a *Action) {
	c.disturbed = true
	d := c.alive[a.Name]
	switch {
	case a.Kind == "deploy" && d != nil:
		c.v.fail(path+".name", "scale the deployed workload, or choose another name", "%q is already deployed", a.Name)
	case a.Kind == "deploy":
		c.alive[a.Name] = &placed{Action: *a, made: path, path: path + ".replicas", since: phase}
		c.checkSpread(path, a)
	case d == nil: // validator.action reports it
	case a.Kind == "delete":
		delete(c.alive, a.Name)
	case a.Kind == "scale":
		d.Replicas, d.path, d.since = a.Replicas, path+".replicas", phase
	case a.Kind == "demand" && d.Autoscales():
		d.Replicas, d.path, d.since = d.Autoscale.Needed(a.CPU, d.CPU), path+".cpu", phase
	case a.Kind == "rollingUpdate":
		if d.WorkloadKind() == Deployment && (d.since < phase || d.update != nil) {
			d.update, d.updated = a, path
		}
		d.since = phase
	}
}

// nodeLabels lists the labels that distinguish or select simulated nodes.
func (c *forecast) nodeLabels() []string {
	all := append(fixedLabels(), corev1.LabelTopologyZone)
	for _, p := range c.v.s.Nodes.Pools {
		all = append(all, corev1.LabelInstanceTypeStable)
		all = slices.AppendSeq(all, maps.Keys(p.Labels))
	}
	slices.Sort(all)
	return slices.Compact(all)
}

func (c *forecast) checkSpread(path string, a *Action) {
	known := c.nodeLabels()
	for i, t := range a.TopologySpread {
		if t.Key == "" || slices.Contains(known, t.Key) || strings.HasPrefix(t.Key, "stormglass.dev/") {
			continue
		}
		hint := "nodes have the labels " + strings.Join(known, ", ")
		for _, label := range known {
			if strings.HasSuffix(label, "/"+t.Key) {
				hint = fmt.Sprintf("did you mean %q?", label)
				break
			}
		}
		c.v.fail(fmt.Sprintf("%s.topologySpread[%d].key", path, i), strictyaml.Hint(t.Key, known, hint), "no simulated node has the label %q", t.Key)
	}
}

// awaitPods checks that the condition podsReady can become true in the phase, and is not already true when the phase
// begins.
func (c *forecast) awaitPods(path string, phase int, p *Phase) {
	at := path + ".until"
	nodes, names := c.v.s.Nodes, c.v.s.Awaited(p)
	awaits := func(name string) bool { return len(p.Of) == 0 || slices.Contains(names, name) }
	switch {
	case len(c.alive) == 0:
		c.v.fail(at, "add actions: [{kind: deploy, name: web, replicas: 100}], or write for: 30s", "podsReady is met immediately: nothing has been deployed before the end of phase %q", p.Name)
	case nodes.Count == 0:
		c.v.fail(at, "set nodes.count", "podsReady is never met: there are no simulated nodes to run pods")
	case c.podsNeverReady: // already reported
	case c.registered() == 0:
		c.v.fail(at, "add a nodeScaleUp to an earlier phase, or lower nodes.later", "podsReady is never met: no node has registered")
	case c.live() <= 0:
		c.v.fail(at, "add a nodeRecovery to an earlier phase", "podsReady is never met: all nodes have failed")
	case !c.disturbed:
		c.v.fail(at, "write for: 30s, or add actions or faults", "podsReady is met immediately: nothing has changed since the previous podsReady")
	default:
		before := len(c.v.errs)
		all := c.alive
		c.alive = maps.Clone(all)
		maps.DeleteFunc(c.alive, func(name string, _ *placed) bool { return !awaits(name) })
		c.capacity()
		if len(c.v.errs) == before {
			c.updates()
		}
		c.starting(phase, p)
		c.alive = all
		c.podsNeverReady = len(c.v.errs) > before
	}
	for name, d := range c.alive {
		if awaits(name) {
			d.update = nil
		}
	}
	c.disturbed = len(p.Of) > 0
}

func (c *forecast) starting(phase int, p *Phase) {
	takes := c.v.s.Nodes.PodStart.Median + c.v.s.Nodes.ImagePull.Median
	for _, name := range slices.Sorted(maps.Keys(c.alive)) {
		since := time.Duration(0)
		for i := c.alive[name].since; i <= phase; i++ {
			since += max(c.v.s.Phases[i].For, c.v.s.Phases[i].Within).D()
		}
		if c.least(c.alive[name], c.rooms(DaemonSet)) > 0 && takes > since {
			field := "nodes.podStart"
			if c.v.s.Nodes.ImagePull.Median > c.v.s.Nodes.PodStart.Median {
				field = "nodes.imagePull"
			}
			c.v.fail(field, fmt.Sprintf("podStart and imagePull together must take less than %s; or make the phase longer", Duration(since)),
				"pods take %s to start, but phase %q lasts at most %s", Duration(takes), p.Name, Duration(since))
			return
		}
	}
}

// opening checks whether a phase that waits for watches is long enough to open them at their rate.
func (c *forecast) opening(path string, p *Phase) {
	length := p.Within.D()
	if !p.Until.Is("watchesOpen") || length == 0 {
		return
	}
	for j := range p.Load {
		l := &p.Load[j]
		if !l.OpensWatches() || l.Shape.Kind != "" || l.Rate <= 0 || l.Count < 1 {
			continue
		}
		if takes := float64(l.Count-1) / float64(l.Rate); takes > length.Seconds() {
			c.v.fail(fmt.Sprintf("%s.load[%d].rate", path, j), fmt.Sprintf("use at least %d/s", int(math.Ceil(float64(l.Count)/length.Seconds()))),
				"opening %d watches at %s takes %s, but the phase lasts at most %s", l.Count, l.Rate, Duration(time.Duration(takes*float64(time.Second)).Round(time.Second)), Duration(length))
		}
	}
}

func (c *forecast) bursts(path string, p *Phase) {
	length := max(p.For, p.Within)
	for j, l := range p.Load {
		if l.Shape.Kind == "burst" && length > 0 && l.Shape.Every >= length {
			c.v.fail(fmt.Sprintf("%s.load[%d].shape.every", path, j), fmt.Sprintf("less than %s", length), "the first burst comes after %s, when the phase is already over", l.Shape.Every)
		}
	}
}

// StartsPods returns the names of the phases in which pods may start: phases with a CronJob, and, if pods or nodes were
// disturbed since the run last waited for pods, phases with another workload.
func (s *Scenario) StartsPods() []string {
	var all []string
	alive := map[string]string{} // kinds by name
	disturbed := false
	for i := range s.Phases {
		p := &s.Phases[i]
		disturbed = disturbed || len(p.Faults) > 0 || slices.ContainsFunc(p.Actions, func(a Action) bool { return a.Kind != "create" })
		for _, a := range p.Actions {
			switch a.Kind {
			case "deploy":
				alive[a.Name] = a.WorkloadKind()
			case "delete":
				delete(alive, a.Name)
			}
		}
		if disturbed && len(alive) > 0 || slices.Contains(slices.Collect(maps.Values(alive)), CronJob) {
			all = append(all, p.Name)
		}
		disturbed = disturbed && (!p.Until.Is("podsReady") || len(p.Of) > 0)
	}
	return all
}

// unserved returns a warning for each resource of a load, and for each API version of an object, that a bundled control
// plane does not serve.
func (s *Scenario) unserved() []string {
	all := s.unservedVersions()
	early := namesOf(slices.DeleteFunc(s.CustomResources(), func(c CustomResource) bool { return !c.Early }), func(c CustomResource) string { return c.Name })
	for _, l := range s.Loads() {
		for i, o := range l.Operations() {
			path := l.Path + ".resource"
			if len(l.Mix) > 0 {
				path = fmt.Sprintf("%s.mix[%d].resource", l.Path, i)
			}
			hint := "create its CustomResourceDefinition in setup or objects, or run with --kubeconfig on a cluster that serves it"
			switch of, ok := builtin.Resources()[o.Resource]; {
			case ok && !slices.ContainsFunc(of.Versions, s.ControlPlane.Serves):
				hint = fmt.Sprintf("set controlPlane.apiServer.flags.runtime-config: %s=true", of.Versions[0])
			case slices.Contains(early, o.Resource) || o.Resource == "" || o.Resource == WidgetResource || !builtin.IsCustom(o.Resource):
				continue
			case builtin.GroupOf(o.Resource) == "metrics.k8s.io":
				if s.ControlPlane.MetricsServer.Replicas > 0 {
					continue
				}
				hint = "set controlPlane.metricsServer.replicas: 1"
			}
			all = append(all, s.Errorf(path, hint, "a bundled control plane does not serve %s", o.Resource).Error())
		}
	}
	return all
}

// unservedVersions returns a warning for each version of a Kubernetes API that templates use but API servers lack.
func (s *Scenario) unservedVersions() (all []string) {
	for _, b := range s.Batches() {
		expanded, err := s.Expand(b)
		if err != nil {
			continue // the reader of the files reports the error
		}
		for _, k := range expanded.Kinds() {
			if hint := s.ServesVersion(k.APIVersion, k.Kind); hint != "" {
				all = append(all, s.Errorf(b.Path+".templates", hint, "a bundled control plane does not serve %s of %s", k.Kind, k.APIVersion).Error())
			}
		}
	}
	return all
}

// ServesVersion returns a hint if the API servers of the scenario do not serve this version of a kind of Kubernetes.
func (s *Scenario) ServesVersion(apiVersion, kind string) (hint string) {
	of, ok := builtin.Resources()[builtin.ResourceOf(apiVersion, kind)]
	if !ok || s.ControlPlane.Serves(apiVersion) {
		return ""
	}
	hint = fmt.Sprintf("set controlPlane.apiServer.flags.runtime-config: %s=true", apiVersion)
	if s.ControlPlane.Serves(of.Versions[0]) {
		hint = fmt.Sprintf("write apiVersion: %s, or %s", of.Versions[0], hint)
	}
	return hint
}
