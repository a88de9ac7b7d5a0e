package traffic

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/stormglass/stormglass/loadgen/result"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

// Bounds of the ledger's ring.
const (
	fewestSlots = 1 << 10
	mostSlots   = 1 << 13
)

// Changes is an open-loop load of measured writes to the objects of a set of
// watches: merge patches of a stamp and a new payload, over the objects in
// turn. Each acknowledged one must be delivered by every watch (see ledger).
type Changes struct {
	load   scenario.Load
	engine *engine
	client *client
}

// NewChanges makes a load of kind "changes" with its defaults set, on the
// watches that it names. It sends nothing yet.
func NewChanges(t Target, l scenario.Load, w *Watches) (*Changes, error) {
	if w == nil {
		return nil, fmt.Errorf("load %s: there are no watches %q", l.Name, l.Watches)
	}
	l.Verb, l.Resource = "patch", configMapsResource
	c, err := t.client(usage{spread: requestConnections})
	if err != nil {
		return nil, fmt.Errorf("load %s: %w", l.Name, err)
	}
	// The ring holds what comes in twice the time that one write may take.
	// The start is in the id so that stamps of a run before are foreign.
	slots := max(fewestSlots, min(mostSlots, int64(float64(l.Rate)*2*l.Timeout.D().Seconds())))
	id := l.Name + "-" + strconv.FormatInt(time.Now().UnixNano(), 36)
	ledger, err := w.newLedger(id, slots)
	if err != nil {
		return nil, fmt.Errorf("load %s: %w", l.Name, err)
	}
	op := &stampedPatch{watches: w, ledger: ledger, client: c, body: newPayload(int64(l.Size), t.Seed)}
	e, err := newEngine(t, l, op, c)
	if err != nil {
		return nil, err
	}
	return &Changes{load: l, engine: e, client: c}, nil
}

// Prepare opens connections. The objects are those of the watches.
func (c *Changes) Prepare(ctx context.Context) error { return c.client.open(ctx) }

// Run offers the writes until ctx ends. When it has returned every write has
// been acknowledged or not: the time for Watches.Drain.
func (c *Changes) Run(ctx context.Context) error {
	defer c.client.close()
	c.engine.run(ctx)
	return nil
}

// BeginPhase attributes writes intended from then on to that phase, and with
// them their deliveries.
func (c *Changes) BeginPhase(name string, at time.Time) { c.engine.phases.Begin(name, at) }

// Live is what happened since the last call.
func (c *Changes) Live() Live { return c.engine.window.live(time.Now()) }

// Results are by phase, of those in which something was offered.
func (c *Changes) Results() map[string]result.Changes {
	byPhase := map[string]result.Changes{}
	for name, r := range c.engine.results(c.load) {
		byPhase[name] = result.Changes{Requests: r, Acknowledged: r.Succeeded}
	}
	return byPhase
}

// stampedPatch is a write that the ledger keeps account of. Its key is its
// number in the schedule, which is its sequence number too.
type stampedPatch struct {
	watches *Watches
	ledger  *ledger
	client  *client
	body    payload
	acks    sync.Map // sequence number to the version in its answer
}

func (p *stampedPatch) reserve(n int64, intended time.Time) (int64, bool) {
	given, ok := p.ledger.begin(n, &p.watches.phases.At(intended).deliveries)
	p.watches.metrics.lost.Add(float64(given))
	return n, ok
}

func (p *stampedPatch) request(n int64) *http.Request {
	objects := p.watches.objects
	return p.client.request(http.MethodPatch, objects.urls[n%int64(len(objects.urls))],
		p.client.writing[mergePatchType], mergePatch(p.ledger.stamp(n), p.body.turn(n)))
}

// read finds the version of the write in the answer. A 2xx answer without one
// is no acknowledgement.
func (p *stampedPatch) read(n int64, resp *http.Response) error {
	if !Outcome(resp.StatusCode).Success() {
		return drain(resp)
	}
	var answer bytes.Buffer
	if _, err := io.Copy(&answer, resp.Body); err != nil {
		return err
	}
	rv, err := versionOf(answer.Bytes())
	if err != nil {
		return errors.Join(errNoAck, err)
	}
	p.acks.Store(n, rv)
	return nil
}

var errNoAck = errors.New("the answer to a write is no object")

func (p *stampedPatch) done(_ context.Context, n int64, o Outcome, end time.Time) {
	rv, ok := p.acks.LoadAndDelete(n)
	if !ok || !o.Success() {
		p.ledger.fail(n)
		return
	}
	p.watches.arrived(p.ledger.ack(n, rv.(uint64), end))
	p.watches.see(rv.(uint64))
}
