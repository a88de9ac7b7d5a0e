package kind

import (
	"context"
	"time"

	"github.com/stormglass/stormglass/loadgen/internal/load"
	"github.com/stormglass/stormglass/loadgen/internal/load/arrival"
	"github.com/stormglass/stormglass/loadgen/internal/load/request"
	"github.com/stormglass/stormglass/loadgen/internal/load/watch"
	"github.com/stormglass/stormglass/loadgen/result"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

// drainTimeout is how long watches may be silent after the last write before
// what has not arrived counts as lost.
const drainTimeout = 10 * time.Second

// changes is requests that write the objects of a load of watches.
type changes struct {
	*request.Requests
	writes  *watch.Changes
	watches *watch.Watches
}

func newChanges(m *making, at scenario.PlacedLoad, pacer arrival.Pacer) (load.Load, error) {
	watches, _ := m.made[at.Watches].(*watch.Watches)
	writes, err := watch.NewChanges(m.target, *at.Load, watches)
	if err != nil {
		return nil, err
	}
	requests, err := request.New(m.target, *at.Load, writes, pacer)
	return &changes{requests, writes, watches}, err
}

// Settle waits until the watches have delivered the writes. What is lost by then
// stands in their results.
func (c *changes) Settle(ctx context.Context) { _, _ = c.watches.Drain(ctx, drainTimeout) }

// AddTo adds the requests, with the number of acknowledged writes.
func (c *changes) AddTo(m *result.Measurements) {
	load.AddToPhases(m, c.Results(), func(p *result.Phase, all []result.Requests) {
		for _, seen := range all {
			p.Changes = append(p.Changes, result.Changes{Requests: seen, Acknowledged: c.writes.Acknowledged()[p.Name]})
		}
	})
}
