package plan

import (
	"fmt"
	"slices"
	"time"

	"github.com/stormglass/stormglass/controlplane/control"
	"github.com/stormglass/stormglass/loadgen/internal/builtin"
	"github.com/stormglass/stormglass/loadgen/internal/condition"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

// Warnings returns one line, with file, line and field, for each setting that works but is not advisable, and for each
// setting that was turned on automatically.
func (p *Plan) Warnings() []string {
	return slices.Concat(p.Scenario.Warnings(), p.sparse(), p.replayLengths())
}

// Unserved returns one line for each resource that the scenario uses but a bundled control plane does not serve. A user's
// cluster may serve it.
func (p *Plan) Unserved() []string {
	return slices.Concat(p.unservedVersions(), p.unserved(), p.unservedSets())
}

// sparse returns a warning if nodes renew their Leases too seldom, and for each load that does less than the scenario
// says: loads with a single request, watches that are not all opened, and ramps and steps that do not complete.
func (p *Plan) sparse() []string {
	var all []string
	warn := func(path, hint, format string, args ...any) {
		all = append(all, p.Errorf(path, hint, format, args...).Error())
	}
	if n, grace := p.Nodes, p.gracePeriod(); n.Count > 0 && grace > 0 && n.LeaseRenew.D() >= grace {
		warn("nodes.leaseRenew", fmt.Sprintf("use less than %s, or a longer node-monitor-grace-period", scenario.Duration(grace)), "nodes become NotReady between their heartbeats, because the controller manager waits only %s for a heartbeat", scenario.Duration(grace))
	}
	for _, l := range p.Loads {
		pacer, length := p.pacer(l), l.Longest
		if pacer == nil || length == 0 {
			continue
		}
		until := ""
		if phase := p.Phase(l.Phase); phase != nil {
			until = phase.Until.String()
		}
		shape := l.Shape
		switch {
		case !l.OpensWatches() && pacer.At(1) >= length:
			warn(l.Path+".rate", "use a higher rate, for example "+atLeast(1/length.Seconds()), "only one arrival is due: the second arrival %s, but the load ends after %s", after(pacer.At(1)), scenario.Duration(length))
		case l.OpensWatches() && !l.Hold && until == "" && pacer.At(int64(l.Count-1)) >= length:
			warn(l.Path+".rate", fmt.Sprintf("use %s or a longer phase", atLeast(float64(l.Count)/length.Seconds())), "only %d of %d watches are open when the phase ends after %s", pacer.Due(length), l.Count, scenario.Duration(length))
		case shape.Kind == "ramp" && until == "" && shape.Over.D() > length:
			warn(l.Path+".shape.over", fmt.Sprintf("at most %s", scenario.Duration(length)), "the ramp does not reach its final rate, because the load ends after %s", scenario.Duration(length))
		case shape.Kind == "step" && until == "" && time.Duration(shape.Steps)*shape.Every.D() >= length:
			warn(l.Path+".shape", fmt.Sprintf("use fewer than %d steps, or steps shorter than %s", shape.Steps, shape.Every), "the last step is never reached, because the load ends after %s", scenario.Duration(length))
		}
	}
	return all
}

// replayLengths returns a warning for each replay that is longer or shorter than its recording.
func (p *Plan) replayLengths() []string {
	var all []string
	for _, l := range p.Loads {
		length := l.Fixed
		if l.Recorded == nil || length == 0 {
			continue
		}
		whole := time.Duration(float64(l.Recorded.Last().D()) / l.Speed)
		switch {
		case whole > length:
			all = append(all, p.Errorf(l.Path+".recording", fmt.Sprintf("to replay the whole recording, make the phase %s long", scenario.Duration(whole.Round(time.Second)+time.Second)),
				"only the first %.3g%% of the recording is replayed, because the load ends after %s", 100*length.Seconds()/whole.Seconds(), scenario.Duration(length)).Error())
		case length > whole+max(whole/10, time.Second):
			all = append(all, p.Errorf(l.Path+".recording", "make the phase shorter",
				"the recording ends after %s, but the load ends only after %s", scenario.Duration(whole.Round(time.Second)), scenario.Duration(length)).Error())
		}
	}
	return all
}

// unserved returns a warning for each resource of a load, and for each API version of an object, that a bundled control
// plane does not serve.
func (p *Plan) unserved() (all []string) {
	for _, l := range p.Loads {
		for i, o := range l.Operations() {
			path := l.Path + ".resource"
			if len(l.Mix) > 0 {
				path = fmt.Sprintf("%s.mix[%d].resource", l.Path, i)
			}
			hint := "create its CustomResourceDefinition in setup or objects, or run with --kubeconfig on a cluster that serves it"
			switch of, ok := builtin.Resources()[o.Resource]; {
			case ok && !slices.ContainsFunc(of.Versions, p.ControlPlane.Serves):
				hint = fmt.Sprintf("set controlPlane.apiServer.flags.runtime-config: %s=true", of.Versions[0])
			case slices.ContainsFunc(p.Defined, func(c scenario.CustomResource) bool { return c.Early && c.Name == o.Resource }) || o.Resource == "" || o.Resource == scenario.WidgetResource || !builtin.IsCustom(o.Resource):
				continue
			case builtin.GroupOf(o.Resource) == "metrics.k8s.io":
				if p.ControlPlane.MetricsServer.Replicas > 0 {
					continue
				}
				hint = "set controlPlane.metricsServer.replicas: 1"
			}
			all = append(all, p.Errorf(path, hint, "a bundled control plane does not serve %s", o.Resource).Error())
		}
	}
	return all
}

// unservedVersions returns a warning for each version of a Kubernetes API that templates use but API servers lack.
func (p *Plan) unservedVersions() (all []string) {
	for _, b := range p.Batches {
		if b.Expanded == nil {
			continue
		}
		for _, k := range b.Expanded.Kinds() {
			if hint := ServesVersion(p.ControlPlane, k.APIVersion, k.Kind); hint != "" {
				all = append(all, p.Errorf(b.Path+".templates", hint, "a bundled control plane does not serve %s of %s", k.Kind, k.APIVersion).Error())
			}
		}
	}
	return all
}

// ServesVersion returns a hint if the API servers of a control plane do not serve this version of a built-in kind.
func ServesVersion(c control.Config, apiVersion, kind string) (hint string) {
	of, ok := builtin.Resources()[builtin.ResourceOf(apiVersion, kind)]
	if !ok || c.Serves(apiVersion) {
		return ""
	}
	hint = fmt.Sprintf("set controlPlane.apiServer.flags.runtime-config: %s=true", apiVersion)
	if c.Serves(of.Versions[0]) {
		hint = fmt.Sprintf("write apiVersion: %s, or %s", of.Versions[0], hint)
	}
	return hint
}

type followedSet struct {
	condition.Set
	path string
}

// followedAt lists the sets of objects that conditions and transitions watch, each with the path of its condition or
// transition in the scenario. A condition that does not compile has no sets.
func (p *Plan) followedAt() (all []followedSet) {
	for i := range p.Phases {
		if c := p.Conditions[p.Phases[i].Name]; c != nil {
			for _, n := range c.Counts {
				all = append(all, followedSet{n.Set, fmt.Sprintf("phases[%d].until", i)})
			}
		}
	}
	for i, t := range p.Transitions {
		path := fmt.Sprintf("transitions[%d]", i)
		all = append(all, followedSet{condition.Set{Resource: t.Resource, Namespace: t.Namespace}, path})
		if t.To == "endpoints" {
			all = append(all, followedSet{condition.Set{Resource: condition.EndpointSlices, Namespace: t.Namespace}, path})
		}
	}
	return all
}

// unservedSets returns a warning for each condition or transition on a resource that a bundled control plane does not
// serve.
func (p *Plan) unservedSets() (all []string) {
	defined := p.DefinedLater()
	for _, f := range p.followedAt() {
		if builtin.IsCustom(f.Resource) && !slices.Contains(defined, f.Resource) {
			all = append(all, p.Errorf(f.path, "create its CustomResourceDefinition in setup, in objects or by an action, or run with --kubeconfig on a cluster that serves it",
				"a bundled control plane does not serve %s", f.Resource).Error())
		}
	}
	return all
}
