package node

import (
	"cmp"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/stormglass/stormglass/loadgen/scenario"
)

// shape is one kind of node.
type shape struct {
	name        string // empty: nodes without shapes
	cpu, memory resource.Quantity
	pods        int
}

func (p *plan) shapeOf(i int) shape {
	if p.shapeAt == nil {
		return p.shapes[0]
	}
	return p.shapes[p.shapeAt[i]]
}

// shape reads the kinds of nodes and deals them out. It returns the most pods that any of them holds.
func (p *plan) shape(fail func(format string, args ...any)) (pods int) {
	s := p.Spec
	kinds := s.Shapes
	if len(kinds) == 0 {
		kinds = []scenario.NodeShape{{}}
	}
	var weights []float64
	sound := true
	bad := func(format string, args ...any) {
		sound = false
		fail(format, args...)
	}
	for _, kind := range kinds {
		one := shape{name: kind.Name, pods: cmp.Or(kind.Pods, s.Pods)}
		var err error
		if one.cpu, err = resource.ParseQuantity(cmp.Or(kind.CPU, s.CPU)); err != nil {
			bad("cpu %q: %v", cmp.Or(kind.CPU, s.CPU), err)
		}
		if one.memory, err = resource.ParseQuantity(cmp.Or(kind.Memory, s.Memory)); err != nil {
			bad("memory %q: %v", cmp.Or(kind.Memory, s.Memory), err)
		}
		weight := cmp.Or(kind.Weight, 1)
		if weight < 0 || one.pods < 1 {
			bad("shape %q has weight %v and %d pods (over 0 each)", kind.Name, weight, one.pods)
		}
		if len(s.Shapes) > 0 && (kind.Name == "" || len(validation.IsValidLabelValue(kind.Name)) > 0) {
			bad("shape %q needs a name that is a label's value", kind.Name)
		}
		p.shapes, weights = append(p.shapes, one), append(weights, weight)
		pods = max(pods, one.pods)
	}
	if sound && len(kinds) > 1 && s.Count > 0 {
		p.shapeAt = deal(weights, s.Count, p.Seed)
	}
	return pods
}
