package watch

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/stormglass/stormglass/loadgen/internal/load"
	"github.com/stormglass/stormglass/loadgen/internal/load/request"
	"github.com/stormglass/stormglass/loadgen/internal/stall"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

// Minimum and maximum number of writes that the ledger keeps in its ring.
const (
	fewestSlots = 1 << 10
	maxSlots    = 1 << 13
)

// Changes is the operation of a load of kind "changes": measured writes to the objects of a load of watches, one object
// after another. Each write is a merge patch that sets a stamp (an annotation that identifies the write) and a new
// payload. Every watch must deliver each acknowledged write (see ledger). Deliveries belong to the phase in which Next
// created the write. A write has the number of its arrival.
type Changes struct {
	watches   *Watches
	ledger    *ledger
	peers     map[int]*ledger // ledgers for the writes of other workers, by worker
	tell      func(load.Ack)  // sends acknowledgements to the other workers; nil without other workers
	name      string
	templates *request.Templates
	template  *request.Template
	answers   sync.Pool // pool of *answer
}

var _ request.Operation = (*Changes)(nil)

// NewChanges returns the operation of a load of kind "changes", which writes to the objects of w. It sends nothing
// yet.
func NewChanges(t load.Target, l scenario.Load, w *Watches) (*Changes, error) {
	if w == nil {
		return nil, fmt.Errorf("load %s: the scenario has no load of kind watches with the name %q", l.Name, l.Watches)
	}
	all, err := request.NewTemplates(t)
	if err != nil {
		return nil, fmt.Errorf("load %s: %w", l.Name, err)
	}
	// The ring has room for the writes that are due within twice the timeout.
	rate := max(float64(l.Rate), float64(l.Shape.EndRate()))
	slots := max(fewestSlots, min(maxSlots, int64(rate*2*l.Timeout.D().Seconds())))
	// The id contains the current time, so that stamps of an earlier run do not match.
	id := l.Name + "-" + strconv.FormatInt(time.Now().UnixNano(), 36)
	if !t.Share.Whole() {
		id = ledgerID(l.Name, t.Share.Run, t.Share.Index)
	}
	account, err := w.newLedger(id, slots)
	if err != nil {
		return nil, fmt.Errorf("load %s: %w", l.Name, err)
	}
	peers, err := w.newPeers(l.Name, slots)
	if err != nil {
		return nil, fmt.Errorf("load %s: %w", l.Name, err)
	}
	return &Changes{
		watches: w, ledger: account, peers: peers, tell: t.Acknowledged, name: l.Name, templates: all,
		template: all.New("PATCH", "application/json", "application/merge-patch+json", nil),
	}, nil
}

func (w *Watches) newLedger(id string, size int64) (*ledger, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, other := range *w.ledgers.Load() {
		if other.id == id {
			return nil, fmt.Errorf("two loads of kind changes have the name %s", id)
		}
	}
	l := newLedger(id, w.roster, size)
	l.step = w.share.Step()
	all := append([]*ledger{l}, *w.ledgers.Load()...)
	w.ledgers.Store(&all)
	return l, nil
}

// ledger returns the ledger with the given id, which is part of a stamp. It returns nil if the stamp is from another
// run.
func (w *Watches) ledger(id []byte) *ledger {
	for _, l := range *w.ledgers.Load() {
		if l.id == string(id) {
			return l
		}
	}
	return nil
}

// Kinds returns the only kind of request: patches of the watched objects.
func (c *Changes) Kinds() []request.Kind {
	return []request.Kind{{Verb: "patch", Resource: c.watches.load.Resource}}
}

// KindOf returns 0, the index of the only kind.
func (c *Changes) KindOf(int64) int { return 0 }

// Prepare does nothing, because the load of watches creates the objects.
func (c *Changes) Prepare(context.Context) error { return nil }

// Background renews the bearer token until ctx ends.
func (c *Changes) Background(ctx context.Context) { c.templates.Renew(ctx) }

// Next creates the write of arrival n. It returns false if the ledger has no place for the write, because an old write
// is still in flight.
func (c *Changes) Next(n int64, r *request.Request) bool {
	w := c.watches
	objects := w.objects.Len()
	if objects == 0 {
		return false // the scenario's validation prevents this
	}
	given, ok := c.ledger.begin(n, w.phases.Now().deliveries)
	w.lost.Add(given)
	if !ok {
		return false
	}
	object := int(n % int64(objects))
	r.Key, r.Template = n, c.template.Load()
	r.Path = w.objects.AppendPath(append(r.Path[:0], c.templates.Prefix()...), object)
	r.Scratch = c.ledger.stamp(r.Scratch[:0], n)
	r.Body = w.objects.AppendPatch(r.Body[:0], object, n, StampAnnotation, r.Scratch)
	a, ok := c.answers.Get().(*answer)
	if !ok {
		a = &answer{}
		a.scan = newJSON(a, levelObject)
	}
	a.scan.reset()
	a.rv = 0
	r.State = a
	return true
}

// answer reads the resourceVersion from the response to a write, piece by piece.
type answer struct {
	scan *jsonScanner
	rv   uint64
}

func (a *answer) take(e *event) error {
	if a.rv = e.rv; a.rv == 0 {
		return malformed("the response to a write has no resourceVersion")
	}
	return nil
}

// Data reads a piece of the response, which is the written object.
func (c *Changes) Data(r *request.Request, status int, p []byte) error {
	if !load.Outcome(status).Success() {
		return nil
	}
	return r.State.(*answer).scan.feed(p)
}

// Done records the write as acknowledged if the response is a complete 2xx with a resourceVersion, otherwise as failed.
func (c *Changes) Done(r *request.Request, o load.Outcome, end time.Time) bool {
	w, a := c.watches, r.State.(*answer)
	defer c.answers.Put(a)
	if !o.Success() || a.rv == 0 || !a.scan.idle() {
		c.ledger.fail(r.Key)
		return false
	}
	late := w.stalls.Late(end)
	if late < stall.LostTick {
		late = 0 // timers alone cause such delays, and including them would only make latencies less accurate
	}
	early, earlySlow := c.ledger.ack(r.Key, a.rv, w.since(end), late)
	w.early.Add(early + earlySlow)
	w.samples.Delivered(early + earlySlow)
	w.exposed.observe(late, early)
	w.see(a.rv)
	if c.tell != nil {
		c.tell(load.Ack{Load: c.name, From: w.share.Index, Seq: r.Key, RV: a.rv, At: end, Late: late})
	}
	return false
}

// Acknowledged returns the number of acknowledged writes by phase, for result.Changes.
func (c *Changes) Acknowledged() map[string]int64 {
	byPhase := map[string]int64{}
	now := time.Now()
	c.watches.phases.Each(time.Time{}, now, func(name string, _ time.Duration, s *watchStats) {
		if n := c.ledger.acknowledged(s.deliveries); n > 0 {
			byPhase[name] += n
		}
	})
	return byPhase
}

// Objects represents the objects that a load of kind "watches" watches and that Changes patches. Paths are
// percent-encoded and have no query.
type Objects interface {
	// Prepare creates the objects, or finds the resource of existing ones. Its errors contain the verb and the
	// object. Call the other methods only after Prepare.
	Prepare(ctx context.Context) error
	// Len returns the number of objects that the load created, which have load.LoadLabel. It is 0 if the load watches
	// existing objects.
	Len() int
	// Collection returns the path of the collection to watch. The collection contains all objects that the load
	// created.
	Collection() string
	// AppendPath appends the path of object i.
	AppendPath(b []byte, i int) []byte
	// AppendPatch appends a JSON merge patch for object i, with the payload of the given turn (the number of the
	// update) and an annotation. Neither key nor value may contain characters that need escaping in JSON.
	AppendPatch(b []byte, i int, turn int64, key string, value []byte) []byte
}
