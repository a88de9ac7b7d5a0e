package traffic

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stormglass/stormglass/loadgen/latency"
	"github.com/stormglass/stormglass/loadgen/pace"
	"github.com/stormglass/stormglass/loadgen/result"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

// Histogram ranges of watches: opening takes in every retry, and a delivery
// may come after a reconnection.
const (
	longestOpen     = 5 * time.Minute
	longestDelivery = 5 * time.Minute
)

// Watches is a set of watches that are opened at a rate and held. On
// configmaps each of them watches all of the load's ConfigMaps, by label, as
// the informer of a controller does, so one write makes as many events as
// there are watches. On another resource each watches all of it.
//
// The watches list once for all, at the start of Run, and go on from the
// newest resourceVersion known when they are opened. A watch asks for
// bookmarks and for an end after 5 to 10 minutes, as client-go's reflectors
// do. When it ends it is resumed from the last version it saw, and after a 410
// from that of a new list.
//
// Memory per watch: 2 KiB of buffer, about 300 B of state, two goroutines (the
// watch's and the HTTP/2 transport's) with their stacks, and the transport's
// stream: 20 to 30 KB together.
type Watches struct {
	load    scenario.Load
	target  Target
	client  *client
	objects *configMaps // nil on another resource
	pacer   pace.Pacer
	metrics watchMetrics
	path    string // of the collection
	roster  *roster
	phases  *Phases[watchStats]

	newest     atomic.Uint64 // resourceVersion known
	open       atomic.Int64
	joined     atomic.Int64 // watches established at least once
	allOpen    chan struct{}
	events     atomic.Int64
	delivered  atomic.Int64
	liveWindow *latency.Histogram

	mu      sync.Mutex
	ledgers atomic.Pointer[[]*ledger] // replaced under mu
	rate    Rate
	running running
}

type running struct{ start, end time.Time }

// watchStats is what the watches saw in one phase.
type watchStats struct {
	deliveries
	openLatency          *latency.Histogram
	openAtEnd            atomic.Int64
	failed               atomic.Int64
	events, bookmarks    atomic.Int64
	reconnects, relisted atomic.Int64
}

// NewWatches makes a load of kind "watches" with its defaults set. It sends
// nothing yet.
func NewWatches(t Target, l scenario.Load) (*Watches, error) {
	pacer, err := pace.New(l.Arrival, float64(l.Rate), t.Seed)
	if err != nil {
		return nil, fmt.Errorf("load %s: %w", l.Name, err)
	}
	if l.Count <= 0 || l.Rate <= 0 {
		return nil, fmt.Errorf("load %s: count and rate of watches must be over 0", l.Name)
	}
	c, err := t.client(usage{spread: 1, mostlyReads: true})
	if err != nil {
		return nil, fmt.Errorf("load %s: %w", l.Name, err)
	}
	metrics, err := newWatchMetrics(t.Registerer, l.Name)
	if err != nil {
		return nil, err
	}
	w := &Watches{
		load: l, target: t, client: c, pacer: pacer, metrics: metrics,
		roster:     &roster{from: make([]atomic.Uint64, l.Count)},
		allOpen:    make(chan struct{}),
		liveWindow: latency.New(longestDelivery),
	}
	w.ledgers.Store(new([]*ledger))
	w.phases = NewPhases(func() *watchStats {
		s := &watchStats{openLatency: latency.New(longestOpen)}
		s.delivery = latency.New(longestDelivery)
		return s
	})
	if l.Resource == configMapsResource {
		if w.objects, err = newConfigMaps(c, t, l.Name, l.Objects, int64(l.Size)); err != nil {
			return nil, fmt.Errorf("load %s: %w", l.Name, err)
		}
		w.path = w.objects.all
	}
	return w, nil
}

// Prepare makes the load's ConfigMaps, or finds its resource.
func (w *Watches) Prepare(ctx context.Context) error {
	if w.objects != nil {
		return w.objects.prepare(ctx)
	}
	var err error
	w.path, err = resolve(ctx, w.client, w.load.Resource, w.target.Namespace)
	return err
}

// Run opens the watches and holds them until ctx ends. Call Drain before that,
// or what is on its way counts as lost.
func (w *Watches) Run(ctx context.Context) error {
	defer w.client.close()
	rv, err := w.list(ctx)
	if err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return err
	}
	w.see(rv)
	start := time.Now()
	w.setRunning(func(r *running) { r.start = start })
	// The watches outlive ctx for as long as it takes to count those open.
	watching, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	var watchers sync.WaitGroup
	timer := time.NewTimer(0)
	defer timer.Stop()
	for i := range w.load.Count {
		intended := start.Add(w.pacer.At(int64(i)))
		if !waitUntil(ctx, timer, intended) {
			break
		}
		watchers.Go(func() { newWatcher(w, i, intended).run(watching) })
	}
	<-ctx.Done()
	for _, l := range *w.ledgers.Load() {
		l.closed.Store(true)
	}
	w.endPhase()
	w.setRunning(func(r *running) { r.end = time.Now() })
	stop()
	watchers.Wait()
	return nil
}

func (w *Watches) setRunning(set func(*running)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	set(&w.running)
}

// BeginPhase attributes what happens from then on to that phase; deliveries
// belong to the phase in which their write was intended.
func (w *Watches) BeginPhase(name string, at time.Time) {
	w.endPhase()
	w.phases.Begin(name, at)
}

// endPhase keeps how many watches were open at the end of the phase, unless
// all have been closed since.
func (w *Watches) endPhase() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.running.end.IsZero() {
		w.phases.Now().openAtEnd.Store(w.open.Load())
	}
}

// Open is how many watches are established.
func (w *Watches) Open() int { return int(w.open.Load()) }

// AllOpen is closed when every watch has been established once.
func (w *Watches) AllOpen() <-chan struct{} { return w.allOpen }

// drainLook is how often Drain looks at the account.
const drainLook = 50 * time.Millisecond

// Drain waits, after the last write has ended, until every expected event has
// been delivered or none has come for the quiet time. What is missing then is
// lost; the number is returned, and the same as in Results.
func (w *Watches) Drain(ctx context.Context, quiet time.Duration) (lost int64, err error) {
	look := time.NewTicker(drainLook)
	defer look.Stop()
	last, since := w.events.Load(), time.Now()
	for {
		lost = 0
		for _, l := range *w.ledgers.Load() {
			expected, delivered := l.count(nil)
			lost += expected - delivered
		}
		if events := w.events.Load(); events != last {
			last, since = events, time.Now()
		}
		if lost == 0 || time.Since(since) >= quiet {
			for _, l := range *w.ledgers.Load() {
				w.metrics.lost.Add(float64(l.giveUp()))
			}
			return lost, nil
		}
		select {
		case <-look.C:
		case <-ctx.Done():
			return lost, context.Cause(ctx)
		}
	}
}

// Live is what happened since the last call.
func (w *Watches) Live() Live {
	delivered := w.delivered.Load()
	w.mu.Lock()
	defer w.mu.Unlock()
	return Live{
		P99:    time.Duration(w.liveWindow.Take().P99 * float64(time.Second)),
		Wanted: w.load.Count, Open: w.Open(),
		Events: w.rate.Since(time.Now(), delivered), Delivered: delivered,
	}
}

// Results are by phase, of those in which the watches ran. They are final
// after Drain.
func (w *Watches) Results() map[string]result.Watches {
	w.mu.Lock()
	start, end := w.running.start, w.running.end
	w.mu.Unlock()
	byPhase := map[string]result.Watches{}
	if start.IsZero() {
		return byPhase
	}
	ended := !end.IsZero()
	if !ended {
		end = time.Now()
	}
	w.phases.Each(start, end, func(name string, length time.Duration, s *watchStats) {
		if length <= 0 || name == "" {
			return
		}
		r := w.result(s)
		if !ended && s == w.phases.Now() {
			r.Open = w.Open()
		}
		byPhase[name] = r
	})
	return byPhase
}

func (w *Watches) result(s *watchStats) result.Watches {
	expected, delivered := s.expected.Load(), s.delivered.Load()
	for _, l := range *w.ledgers.Load() {
		e, d := l.count(&s.deliveries)
		expected, delivered = expected+e, delivered+d
	}
	return result.Watches{
		Load: w.load.Name, Resource: w.load.Resource,
		Wanted: w.load.Count, Open: int(s.openAtEnd.Load()), Failed: s.failed.Load(),
		OpenLatency: s.openLatency.Latency(),
		Expected:    expected, Delivered: delivered, Lost: expected - delivered,
		Duplicated: s.duplicated.Load(), Reordered: s.reordered.Load(),
		BeforeAck: s.beforeAck.Load(), Late: s.late.Load(),
		Events: s.events.Load(), Bookmarks: s.bookmarks.Load(),
		Reconnects: s.reconnects.Load(), Relists: s.relisted.Load(),
		Delivery: s.delivery.Latency(),
	}
}

// newLedger opens an account of writes to the load's objects.
func (w *Watches) newLedger(id string, size int64) (*ledger, error) {
	if w.objects == nil {
		return nil, fmt.Errorf("watches %s are on %s: changes are measured on configmaps only", w.load.Name, w.load.Resource)
	}
	l := newLedger(id, w.roster, size)
	w.mu.Lock()
	defer w.mu.Unlock()
	all := append([]*ledger{l}, *w.ledgers.Load()...)
	for _, other := range all[1:] {
		if other.id == id {
			return nil, fmt.Errorf("two loads of changes are called %s", id)
		}
	}
	w.ledgers.Store(&all)
	return l, nil
}

// ledger finds the account that a stamp belongs to, nil if it is not ours.
func (w *Watches) ledger(id []byte) *ledger {
	for _, l := range *w.ledgers.Load() {
		if l.id == string(id) {
			return l
		}
	}
	return nil
}

// see remembers the newest version there is, for watches to start from.
func (w *Watches) see(rv uint64) {
	for {
		known := w.newest.Load()
		if rv <= known || w.newest.CompareAndSwap(known, rv) {
			return
		}
	}
}
