package traffic

import (
	"context"
	"fmt"
	"time"

	"github.com/stormglass/stormglass/loadgen/result"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

// requestConnections is how many connections a request load goes round before
// it fills any to the server's limit.
const requestConnections = 4

// Requests is an open-loop load of one verb on one resource.
//
//   - get, update, patch: one of the load's ConfigMaps, drawn by the seed.
//   - list: all of the load's ConfigMaps, by label.
//   - create: ConfigMaps NAME-new-SEED-0, -1, ..., with the arrival's number.
//   - delete: one of the load's ConfigMaps, in turn. It is made again in the
//     same slot by a request that is not measured, so that each delete finds
//     its object. While all of them are being deleted or made, arrivals are
//     unsent.
//   - update replaces the object without naming a resourceVersion, as
//     `kubectl replace` of a plain manifest does; so it never meets a 409.
//   - get and list work on any other resource too, found by discovery. The
//     names for get come from a list, which is renewed every ten seconds, and
//     every second while there are none; until there are, a name that does
//     not exist is asked for and the answers are 404.
type Requests struct {
	load   scenario.Load
	engine *engine
	op     requestOperation
	client *client
}

// requestOperation is an operation with a life of its own.
type requestOperation interface {
	operation
	prepare(ctx context.Context) error
	// background works beside the load until ctx ends; nil if there is nothing
	// to do.
	background(ctx context.Context)
}

// NewRequests makes a load of kind "requests" with its defaults set. It sends
// nothing yet.
func NewRequests(t Target, l scenario.Load) (*Requests, error) {
	c, err := t.client(usage{spread: requestConnections})
	if err != nil {
		return nil, fmt.Errorf("load %s: %w", l.Name, err)
	}
	op, err := newOperation(t, l, c)
	if err != nil {
		return nil, fmt.Errorf("load %s: %w", l.Name, err)
	}
	e, err := newEngine(t, l, op, c)
	if err != nil {
		return nil, err
	}
	return &Requests{load: l, engine: e, op: op, client: c}, nil
}

// Prepare makes the load's objects, or finds its resource.
func (r *Requests) Prepare(ctx context.Context) error {
	if err := r.op.prepare(ctx); err != nil {
		return err
	}
	return r.client.open(ctx)
}

// Run offers the load until ctx ends.
func (r *Requests) Run(ctx context.Context) error {
	defer r.client.close()
	background, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		r.op.background(background)
	}()
	r.engine.run(ctx)
	cancel()
	<-ended
	return nil
}

// BeginPhase attributes requests intended from then on to that phase.
func (r *Requests) BeginPhase(name string, at time.Time) { r.engine.phases.Begin(name, at) }

// Live is what happened since the last call.
func (r *Requests) Live() Live { return r.engine.window.live(time.Now()) }

// Results are by phase, of those in which something was offered. Rates are per
// second that the load ran in the phase. They are final after Run.
func (r *Requests) Results() map[string]result.Requests { return r.engine.results(r.load) }
