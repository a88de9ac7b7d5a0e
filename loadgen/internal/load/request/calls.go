package request

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/stormglass/stormglass/loadgen/internal/load"
	"github.com/stormglass/stormglass/loadgen/internal/load/arrival"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

// Calls is an open-loop load that calls a load.Caller at each arrival, in a separate goroutine. It has the same kind of
// results as Requests.
type Calls struct {
	measured
	target load.Target
	caller load.Caller
}

var _ load.Load = (*Calls)(nil)

// NewCalls returns a load that makes calls. It makes no calls before Run. The defaults of l must be set.
func NewCalls(t load.Target, l scenario.Load, caller load.Caller, pacer arrival.Pacer) (*Calls, error) {
	kinds := []Kind{{Verb: "call", Resource: l.Name}}
	all, err := newMetrics(t.Registerer, l.Name, kinds)
	if err != nil {
		return nil, fmt.Errorf("load %s: %w", l.Name, err)
	}
	e := newEngine(kinds, pacer, all, int64(l.MaxInFlight), l.Timeout.D())
	e.of(t, l.Name)
	return &Calls{measured: measured{name: l.Name, engine: e}, target: t, caller: caller}, nil
}

// Prepare calls the method Prepare of the load.Caller.
func (c *Calls) Prepare(ctx context.Context) error {
	return c.caller.Prepare(ctx, c.target.Config, c.target.Namespace, c.target.Labels)
}

// Run makes a call at each arrival until ctx ends. It returns when all calls have ended.
func (c *Calls) Run(ctx context.Context) error {
	e := c.engine
	e.begin(ctx)
	var calls sync.WaitGroup
	timer := time.NewTimer(0)
	defer timer.Stop()
	for e.due = e.next(); e.awaitDue(ctx, timer); e.advance() {
		now := e.now()
		if e.inFlight.Load() >= e.maxInFlight {
			e.unsent(0, e.ownBacklog(now))
			continue
		}
		f := &flight{engine: e, sent: now}
		e.takeUp(f, 0, now)
		calls.Go(func() { c.call(f) })
	}
	end := e.now()
	for late := !e.paused(); late && e.due < end; e.advance() {
		e.unsent(0, true)
	}
	e.stop(end)
	calls.Wait()
	return nil
}

func (c *Calls) call(f *flight) {
	ctx, cancel := context.WithTimeout(context.Background(), c.engine.timeout)
	defer cancel()
	var err error
	var begun time.Duration
	if opener, ok := c.caller.(load.Opener); ok {
		err = opener.Open(ctx, func() { begun = c.engine.now() })
	} else {
		err = c.caller.Do(ctx)
	}
	end := cmp.Or(begun, c.engine.now())
	c.engine.account(f, outcomeOfCall(err), end, c.engine.ownDelay(f, end, 0))
	c.engine.inFlight.Add(-1)
}

// outcomeOfCall returns the outcome of a call that returned err. The outcome is 200 if err is nil, and the HTTP status
// if err is an API error.
func outcomeOfCall(err error) load.Outcome {
	if err == nil {
		return 200
	}
	var answer apierrors.APIStatus
	if errors.As(err, &answer) && answer.Status().Code > 0 {
		return load.Outcome(answer.Status().Code)
	}
	return load.OutcomeOf(err)
}
