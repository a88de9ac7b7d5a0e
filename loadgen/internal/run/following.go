package run

import (
	"slices"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/stormglass/stormglass/internal/exitcode"
	"github.com/stormglass/stormglass/loadgen/internal/cluster"
	"github.com/stormglass/stormglass/loadgen/internal/follow"
	"github.com/stormglass/stormglass/loadgen/internal/stall"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

// newFollower returns a Follower of the objects that the scenario's conditions and transitions refer to. It returns
// nil if the scenario has no such conditions or transitions.
func newFollower(t *cluster.Target, s *scenario.Scenario, stalls *stall.Meter) (*follow.Follower, error) {
	if len(s.Followed()) == 0 {
		return nil, nil
	}
	later := s.DefinedLater()
	o := follow.Options{
		Namespaces: t.Namespaces(), Selector: labels.Set(t.Labels).String(), Later: func(resource string) bool { return slices.Contains(later, resource) }, Stalls: stalls,
	}
	var err error
	if o.Conditions, err = s.Conditions(); err != nil {
		return nil, exitcode.UsageError(err)
	}
	for _, x := range s.Transitions {
		one := follow.Transition{Name: x.Name}
		if one.Set, one.Selector, one.From, one.To, err = x.Compile(); err != nil {
			return nil, exitcode.UsageError(err)
		}
		o.Transitions = append(o.Transitions, one)
	}
	f, err := follow.New(t.Requests.Counted(t.Load), o)
	return f, exitcode.EnvironmentError(err)
}
