package run

import (
	"slices"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/stormglass/stormglass/internal/exitcode"
	"github.com/stormglass/stormglass/loadgen/internal/cluster"
	"github.com/stormglass/stormglass/loadgen/internal/follow"
	"github.com/stormglass/stormglass/loadgen/internal/plan"
	"github.com/stormglass/stormglass/loadgen/internal/stall"
)

// newFollower returns a Follower of the objects that the scenario's conditions and transitions refer to. It returns
// nil if the scenario has no such conditions or transitions.
func newFollower(t *cluster.Target, p *plan.Plan, stalls *stall.Meter) (*follow.Follower, error) {
	if len(p.Followed) == 0 {
		return nil, nil
	}
	later := p.DefinedLater()
	o := follow.Options{
		Namespaces: t.Namespaces(), Selector: labels.Set(t.Labels).String(), Later: func(resource string) bool { return slices.Contains(later, resource) }, Stalls: stalls, Conditions: p.Conditions,
	}
	var err error
	for _, x := range p.Transitions {
		one := follow.Transition{Name: x.Name}
		if one.Set, one.Selector, one.From, one.To, err = x.Compile(); err != nil {
			return nil, exitcode.UsageError(err)
		}
		o.Transitions = append(o.Transitions, one)
	}
	f, err := follow.New(t.Requests.Counted(t.Load), o)
	return f, exitcode.EnvironmentError(err)
}
