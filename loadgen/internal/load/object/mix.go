package object

import (
	"slices"

	"github.com/stormglass/stormglass/loadgen/internal/load/request"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

// mix draws an operation and a tenant for each arrival of a load of kind "requests".
type mix struct {
	asked   []scenario.Operation
	weights shares
	tenants []scenario.Tenant // a single tenant without a name if the load has no tenants
	shares  shares
	verb    stream
	tenant  stream
	kinds   []request.Kind
	kindOf  []int // indexes into kinds, by operation * number of tenants + tenant
}

func newMix(seed int64, l scenario.Load) *mix {
	m := &mix{asked: l.Operations(), tenants: l.Tenants, verb: newStream(seed, l.Name, "operation"), tenant: newStream(seed, l.Name, "tenant")}
	if len(m.tenants) == 0 {
		m.tenants = []scenario.Tenant{{Share: 1}}
	}
	var weights, dealt []float64
	for _, x := range m.asked {
		weights = append(weights, max(x.Weight, 0))
	}
	if len(m.asked) == 1 {
		weights[0] = 1
	}
	for _, x := range m.tenants {
		dealt = append(dealt, x.Share)
	}
	m.weights, m.shares = newShares(weights), newShares(dealt)
	for _, x := range m.asked {
		for _, tenant := range m.tenants {
			kind := request.Kind{Verb: x.Verb, Resource: x.FullResource(), Variant: variant(x), Tenant: tenant.Name}
			i := slices.Index(m.kinds, kind)
			if i < 0 {
				i = len(m.kinds)
				m.kinds = append(m.kinds, kind)
			}
			m.kindOf = append(m.kindOf, i)
		}
	}
	return m
}

// Kinds returns one kind for each pair of operation and tenant.
func (m *mix) Kinds() []request.Kind { return m.kinds }

// KindOf returns the index in Kinds for the operation and the tenant of arrival n.
func (m *mix) KindOf(n int64) int {
	which, tenant := m.draw(n)
	return m.kindOf[which*len(m.tenants)+tenant]
}

func (m *mix) draw(n int64) (which, tenant int) {
	if len(m.asked) > 1 {
		which = m.weights.pick(m.verb.unit(n))
	}
	if len(m.tenants) > 1 {
		tenant = m.shares.pick(m.tenant.unit(n))
	}
	return which, tenant
}

// Count returns the number of requests by verb and resource among the first n arrivals of a load of kind "requests".
func Count(seed int64, l scenario.Load, n int64) map[[2]string]int64 {
	m, all := newMix(seed, l), map[[2]string]int64{}
	if len(m.asked) == 1 {
		return map[[2]string]int64{{m.kinds[0].Verb, m.kinds[0].Resource}: n}
	}
	for i := range n {
		k := &m.kinds[m.KindOf(i)]
		all[[2]string{k.Verb, k.Resource}]++
	}
	return all
}
