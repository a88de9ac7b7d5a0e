package scenario

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/stormglass/stormglass/internal/strictyaml"
	"github.com/stormglass/stormglass/loadgen/internal/builtin"
	"github.com/stormglass/stormglass/loadgen/internal/condition"
)

// maxTransitions is the maximum number of transitions. It limits memory: each transition has two distributions of 200
// KB in each phase.
const maxTransitions = 20

// Transition measures how long objects take from one state to another, as a watch sees it. A predefined name
// (docs/reference/conditions.md), such as pod-ready, needs no other fields. Other names need `resource` and `to`.
type Transition struct {
	Name      string `yaml:"name"`                // unique name of the transition
	Resource  string `yaml:"resource,omitempty"`  // resource of the objects, such as "deployments.apps" or a custom resource
	Namespace string `yaml:"namespace,omitempty"` // namespace of the objects, default the run's namespace
	Selector  string `yaml:"selector,omitempty"`  // label selector of the objects, such as "app=web"
	// From: state in which the time begins; default "created", which means that the watch first sees the object
	From string `yaml:"from,omitempty"`
	// To: state in which the time ends: "scheduled", "initialized", "containersReady" or "ready" of pods, "ready" of
	// Nodes, "established" of CustomResourceDefinitions, "complete" of Jobs, "bound" of PersistentVolumeClaims,
	// "endpoints" of Services, "available" of Deployments; "deleting" or "deleted" of any resource; or "condition=TYPE",
	// "jsonpath=PATH=VALUE", "cel=EXPR"
	To string `yaml:"to,omitempty"`
}

// knownTransitions returns the transitions that need only a name in the scenario.
func knownTransitions() map[string]Transition {
	return map[string]Transition{
		"pod-scheduled":        {Resource: "pods", To: "scheduled"},
		"pod-initialized":      {Resource: "pods", To: "initialized"},
		"pod-containers-ready": {Resource: "pods", To: "containersReady"},
		"pod-ready":            {Resource: "pods", To: "ready"},
		"job-complete":         {Resource: "jobs.batch", To: "complete"},
		"pvc-bound":            {Resource: "persistentvolumeclaims", To: "bound"},
		"service-endpoints":    {Resource: "services", To: "endpoints"},
		"deployment-available": {Resource: "deployments.apps", To: "available"},
	}
}

func (t *Transition) setDefaults() {
	if known, ok := knownTransitions()[t.Name]; ok && t.Resource == "" && t.From == "" && t.To == "" {
		t.Resource, t.To = known.Resource, known.To
	}
	orDefault(&t.From, "created")
}

func (t Transition) set() condition.Set {
	return condition.Set{Resource: t.Resource, Namespace: t.Namespace}
}

// Compile returns the set of objects of the transition, their selector, and the two states.
func (t Transition) Compile() (set condition.Set, selector labels.Selector, from, to condition.State, err error) {
	if selector, err = labels.Parse(t.Selector); err != nil {
		return set, nil, from, to, err
	}
	if from, err = condition.ParseState(t.Resource, t.From, nil); err != nil {
		return set, nil, from, to, err
	}
	to, err = condition.ParseState(t.Resource, t.To, nil)
	return t.set(), selector, from, to, err
}

func (v *validator) transitions() {
	if len(v.s.Transitions) > maxTransitions {
		v.fail("transitions", fmt.Sprintf("at most %d", maxTransitions), "%d transitions", len(v.s.Transitions))
	}
	seen := map[string]bool{}
	for i := range v.s.Transitions {
		t := &v.s.Transitions[i]
		path := fmt.Sprintf("transitions[%d]", i)
		v.uniqueName(path, "transition", t.Name, seen)
		if !v.s.recorded { // another version of Stormglass may have recorded the run
			v.transition(path, t)
		}
	}
}

func (v *validator) transition(path string, t *Transition) {
	known := slices.Sorted(maps.Keys(knownTransitions()))
	if t.Resource == "" && t.To == "" {
		v.fail(path+".name", strictyaml.Hint(t.Name, known, "write resource: and to:, or use a built-in name: "+strings.Join(known, ", ")), "unknown transition %q", t.Name)
		return
	}
	before := len(v.errs)
	v.followed(path, t.Resource, t.Namespace, t.Selector)
	if t.To == "" {
		v.fail(path+".to", "for example ready, or condition=Ready", "is missing")
	}
	if len(v.errs) > before {
		return
	}
	for _, f := range [][2]string{{"from", t.From}, {"to", t.To}} {
		s, err := condition.ParseState(t.Resource, f[1], builtin.Schema{})
		switch {
		case err != nil:
			v.failCondition(path+"."+f[0], err)
		case f[0] == "from" && (s.Kind == condition.Deleted || s.Kind == condition.Endpoints):
			v.fail(path+".from", "write it as to:", "%s cannot be the first state of a transition", f[1])
		case f[0] == "to" && s.Kind == condition.Created:
			v.fail(path+".to", "for example ready, or condition=Ready", "created cannot be the last state of a transition")
		case f[0] == "to" && t.From == t.To:
			v.fail(path+".to", "write a different state", "from and to are the same")
		}
	}
}
