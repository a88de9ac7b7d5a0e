package object

import (
	"testing"

	"github.com/stormglass/stormglass/loadgen/scenario"
)

// Count returns how often the operation draws each kind, regardless of tenants.
func TestCountIsWhatIsDrawn(t *testing.T) {
	l := scenario.Load{Name: "mixed", Mix: []scenario.Operation{
		{Verb: "get", Resource: "configmaps", Weight: 3}, {Verb: "patch", Resource: "pods", Subresource: "status", Weight: 1}, {Verb: "get", Resource: "configmaps", Limit: 5, Weight: 1},
	}, Tenants: []scenario.Tenant{{Name: "a", Share: 1}, {Name: "b", Share: 3}}}
	const n = 10_000
	m, drawn := newMix(7, l), map[string]int64{}
	for i := range int64(n) {
		drawn[m.Kinds()[m.KindOf(i)].Verb]++
	}
	all := Count(7, l, n)
	gets, patches := all[[2]string{"get", "configmaps"}], all[[2]string{"patch", "pods/status"}]
	if gets != drawn["get"] || patches != drawn["patch"] || gets+patches != n || patches < n/5-200 || patches > n/5+200 {
		t.Errorf("%v, drawn %v", all, drawn)
	}
	if one := Count(7, scenario.Load{Name: "x", Operation: scenario.Operation{Verb: "list", Resource: "nodes"}}, n); one[[2]string{"list", "nodes"}] != n {
		t.Errorf("%v", one)
	}
}
