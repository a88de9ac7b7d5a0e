package plan

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/stormglass/stormglass/loadgen/scenario"
)

// forecast tracks the expected state of workloads and nodes from phase to phase, to find problems before the run.
type forecast struct {
	*Plan
	errs  []error
	alive map[string]*placed // workloads that have been deployed, by name
	// disturbed is true if an action or fault has affected pods or nodes since the run last waited for them.
	disturbed      bool
	podsNeverReady bool // some pods can never become ready
	fleet
}

// placed is a workload in the forecast. since is the index of the phase with the last action on it.
type placed struct {
	scenario.Action
	made    string // path of the deploy action in the scenario
	path    string // path in the scenario of the field that sets the replicas
	since   int
	update  *scenario.Action // last rollingUpdate that replaces earlier pods; nil after the run has waited for the pods
	updated string           // path of `update` in the scenario
}

// Check returns the problems of the plan that are certain before the run: conditions that hold from the start or that
// never hold, pods that fit on no node, and faults without a target. It returns nil for the plan of a finished run.
func (p *Plan) Check() error {
	if p.Recorded() {
		return nil
	}
	c := &forecast{Plan: p, errs: slices.Clone(p.unread), alive: map[string]*placed{}}
	c.otherwiseNotReady, c.later = !c.registersAtOnce(), c.Nodes.Later
	c.heartbeats()
	for i := range c.Phases {
		p := &c.Phases[i]
		path := fmt.Sprintf("phases[%d]", i)
		for j := range p.Actions {
			c.act(fmt.Sprintf("%s.actions[%d]", path, j), i, &p.Actions[j])
		}
		notReady := c.mayBeNotReady(c.elapsed)
		before := len(c.errs)
		c.applyFaults(path, p)
		switch p.Until.Text {
		case "podsReady":
			c.awaitPods(path, i, p)
		case "nodesReady":
			if len(c.errs) == before { // otherwise the state of the nodes is unknown
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
	return errors.Join(c.errs...)
}

func (c *forecast) report(path, hint, format string, args ...any) {
	c.errs = append(c.errs, c.Errorf(path, hint, format, args...))
}

func (c *forecast) act(path string, phase int, all *scenario.Action) {
	if all.Kind == "create" || all.OnObjects() { // the forecast does not track their pods
		return
	}
	for _, a := range all.Each() {
		c.actOnOne(path, phase, &a)
	}
}

func (c *forecast) actOnOne(path string, phase int, a *scenario.Action) {
	c.disturbed = true
	d := c.alive[a.Name]
	switch {
	case a.Kind == "deploy" && d != nil:
		c.report(path+".name", "scale the deployed workload, or choose another name", "%q is already deployed", a.Name)
	case a.Kind == "deploy":
		c.alive[a.Name] = &placed{Action: *a, made: path, path: path + ".replicas", since: phase}
	case d == nil: // the scenario reports it
	case a.Kind == "delete":
		delete(c.alive, a.Name)
	case a.Kind == "scale":
		d.Replicas, d.path, d.since = a.Replicas, path+".replicas", phase
	case a.Kind == "demand" && d.Autoscales():
		d.Replicas, d.path, d.since = d.Autoscale.Needed(a.CPU, d.CPU), path+".cpu", phase
	case a.Kind == "rollingUpdate":
		if d.WorkloadKind() == scenario.Deployment && (d.since < phase || d.update != nil) {
			d.update, d.updated = a, path
		}
		d.since = phase
	}
}

// awaitPods reports an error if podsReady cannot become true in the phase, or is already true when the phase begins.
func (c *forecast) awaitPods(path string, phase int, p *scenario.Phase) {
	at := path + ".until"
	nodes, names := c.Nodes, c.Awaited(p)
	awaits := func(name string) bool { return len(p.Of) == 0 || slices.Contains(names, name) }
	switch {
	case len(c.alive) == 0:
		c.report(at, "add actions: [{kind: deploy, name: web, replicas: 100}], or write for: 30s", "podsReady is met immediately: nothing has been deployed before the end of phase %q", p.Name)
	case nodes.Count == 0:
		c.report(at, "set nodes.count", "podsReady is never met: there are no simulated nodes to run pods")
	case c.podsNeverReady: // already reported
	case c.registered() == 0:
		c.report(at, "add a nodeScaleUp to an earlier phase, or lower nodes.later", "podsReady is never met: no node has registered")
	case c.live() <= 0:
		c.report(at, "add a nodeRecovery to an earlier phase", "podsReady is never met: all nodes have failed")
	case !c.disturbed:
		c.report(at, "write for: 30s, or add actions or faults", "podsReady is met immediately: nothing has changed since the previous podsReady")
	default:
		before := len(c.errs)
		all := c.alive
		c.alive = maps.Clone(all)
		maps.DeleteFunc(c.alive, func(name string, _ *placed) bool { return !awaits(name) })
		c.capacity()
		if len(c.errs) == before {
			c.updates()
		}
		c.starting(phase, p)
		c.alive = all
		c.podsNeverReady = len(c.errs) > before
	}
	for name, d := range c.alive {
		if awaits(name) {
			d.update = nil
		}
	}
	c.disturbed = len(p.Of) > 0
}

func (c *forecast) starting(phase int, p *scenario.Phase) {
	takes := c.Nodes.PodStart.Median + c.Nodes.ImagePull.Median
	for _, name := range slices.Sorted(maps.Keys(c.alive)) {
		since := time.Duration(0)
		for i := c.alive[name].since; i <= phase; i++ {
			since += max(c.Phases[i].For, c.Phases[i].Within).D()
		}
		if c.least(c.alive[name], c.rooms(scenario.DaemonSet)) > 0 && takes > since {
			field := "nodes.podStart"
			if c.Nodes.ImagePull.Median > c.Nodes.PodStart.Median {
				field = "nodes.imagePull"
			}
			c.report(field, fmt.Sprintf("podStart and imagePull together must take less than %s; or make the phase longer", scenario.Duration(since)),
				"pods take %s to start, but phase %q lasts at most %s", scenario.Duration(takes), p.Name, scenario.Duration(since))
			return
		}
	}
}

// opening checks whether a phase that waits for watches is long enough to open them at their rate.
func (c *forecast) opening(path string, p *scenario.Phase) {
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
			c.report(fmt.Sprintf("%s.load[%d].rate", path, j), fmt.Sprintf("use at least %d/s", int(math.Ceil(float64(l.Count)/length.Seconds()))),
				"opening %d watches at %s takes %s, but the phase lasts at most %s", l.Count, l.Rate, scenario.Duration(time.Duration(takes*float64(time.Second)).Round(time.Second)), scenario.Duration(length))
		}
	}
}

func (c *forecast) bursts(path string, p *scenario.Phase) {
	length := max(p.For, p.Within)
	for j, l := range p.Load {
		if l.Shape.Kind == "burst" && length > 0 && l.Shape.Every >= length {
			c.report(fmt.Sprintf("%s.load[%d].shape.every", path, j), fmt.Sprintf("less than %s", length), "the first burst comes after %s, when the phase is already over", l.Shape.Every)
		}
	}
}
