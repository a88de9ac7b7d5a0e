package scenario

import (
	"fmt"
	"slices"

	"github.com/stormglass/stormglass/loadgen/internal/builtin"
)

// Teardown is the name of the teardown in {{.JobName}}, the timeline and errors.
const Teardown = "teardown"

func (v *validator) teardown() {
	for i := range v.s.Teardown {
		a, path := &v.s.Teardown[i], fmt.Sprintf("teardown[%d]", i)
		if !v.oneOf(path+".kind", a.Kind, actionKinds...) {
			continue
		}
		if !a.OnObjects() {
			v.fail(path, "use templates or target; the run itself removes deployed workloads and objects of object:", "a teardown accepts only actions on objects")
			continue
		}
		v.objectAction(path, a)
		if a.After != 0 || a.Every != 0 {
			field := map[bool]string{true: ".after", false: ".every"}[a.After != 0]
			v.fail(path+field, "leave it out", "the actions of a teardown run one after another")
		}
	}
}

// onlyMade lists resources whose objects exist in the run's namespaces only if the scenario creates them: neither the
// API server nor a controller does.
var onlyMade = []string{
	"secrets", "services", "resourcequotas", "limitranges", "replicationcontrollers",
	"deployments.apps", "statefulsets.apps", "daemonsets.apps", "cronjobs.batch", "horizontalpodautoscalers.autoscaling",
	"ingresses.networking.k8s.io", "networkpolicies.networking.k8s.io", "poddisruptionbudgets.policy",
	"roles.rbac.authorization.k8s.io", "rolebindings.rbac.authorization.k8s.io", "leases.coordination.k8s.io",
}

var ofDeploys = []string{
	"services", "deployments.apps", "statefulsets.apps", "daemonsets.apps", "cronjobs.batch", "horizontalpodautoscalers.autoscaling",
}

// targets reports an error for an action whose target matches no object, because the scenario creates no objects of the
// resource before the action. It checks nothing if hooks, the Go program or a recording may create objects.
func (v *validator) targets() {
	s := v.s
	if s.recorded || len(s.Hooks()) > 0 || s.anyAction(func(a *Action) bool { return a.Kind == "custom" }) || slices.ContainsFunc(s.Loads(), func(l PlacedLoad) bool { return l.Kind == "custom" || l.Kind == "replay" }) {
		return
	}
	for _, a := range s.objectActions() {
		r := a.Target.Resource
		if !slices.Contains(onlyMade, r) {
			continue
		}
		if made, known := s.makes(r, a.phase); known && !made {
			v.fail(a.path+".target.resource", "create them earlier, with objects:, an action or a load", "the scenario creates no %s before this action", r)
		}
	}
}

// makes reports whether the scenario creates objects of a resource before or in a phase. `known` is false if template
// files were not read, or if templates create custom resources, because an operator may then create any objects.
func (s *Scenario) makes(resource string, phase int) (made, known bool) {
	for i := range s.Phases[:min(phase+1, len(s.Phases))] {
		for _, a := range s.Phases[i].Actions {
			made = made || a.Kind == "deploy" && slices.Contains(ofDeploys, resource)
		}
		for _, m := range s.Phases[i].Manifests() {
			made = made || m.Resource.GroupResource().String() == resource
		}
	}
	for _, m := range s.SetupManifests() {
		made = made || m.Resource.GroupResource().String() == resource
	}
	for _, l := range s.Loads() {
		for _, o := range l.Operations() {
			made = made || o.Resource == resource && (l.OwnObjects(o) || o.Verb == "create")
		}
	}
	later := func(name string) bool { return slices.Index(s.PhaseNames(), name) > phase }
	for _, b := range s.Batches() {
		if later(b.Phase) {
			continue
		}
		all, err := s.Expand(b)
		if err != nil {
			return false, false
		}
		for _, k := range all.Kinds() {
			of := builtin.ResourceOf(k.APIVersion, k.Kind)
			if builtin.IsCustom(of) {
				return false, false
			}
			made = made || of == resource
		}
	}
	return made, true
}
