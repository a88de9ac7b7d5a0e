package watch

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stormglass/stormglass/internal/atomicmax"
	"github.com/stormglass/stormglass/internal/bools"
	"github.com/stormglass/stormglass/loadgen/internal/apiclient"
	"github.com/stormglass/stormglass/loadgen/internal/apiclient/listwatch"
	"github.com/stormglass/stormglass/loadgen/internal/latency"
	"github.com/stormglass/stormglass/loadgen/internal/load"
	"github.com/stormglass/stormglass/loadgen/internal/load/arrival"
	"github.com/stormglass/stormglass/loadgen/internal/load/request"
	"github.com/stormglass/stormglass/loadgen/internal/samples"
	"github.com/stormglass/stormglass/loadgen/internal/stall"
	"github.com/stormglass/stormglass/loadgen/result"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

// Maximum values of the histograms. They are high because an opening latency includes retries, and a reconnection may
// delay a delivery.
const (
	longestOpen     = 5 * time.Minute
	longestDelivery = 5 * time.Minute
)

// Watches is a load of kind "watches". It opens watches at a rate and keeps them open. In a run with several workers,
// it opens only this worker's share. It is safe for concurrent use.
type Watches struct {
	load.Plain
	load      scenario.Load
	objects   Objects
	pacer     arrival.Pacer
	endpoint  *apiclient.Endpoint
	templates templates
	requests  requests // the common fields of the watches' requests; set by Prepare
	roster    *roster
	watchers  []watcher
	slow      int // number of watches that are slow on purpose
	phases    *load.Phases[watchStats]
	base      time.Time
	exposed   *exposed
	samples   *samples.Streams
	share     load.Share
	pause     *load.Pause
	stalls    *stall.Meter
	// queue contains the watches whose streams must be opened. Its capacity is the number of watches, so that read
	// loops never block on it.
	queue chan *watcher

	newest      atomic.Uint64 // newest known resourceVersion
	open        atomic.Int64
	established atomic.Int64 // number of watches that must deliver writes
	allOpen     chan struct{}
	closing     atomic.Bool
	listFirst   atomic.Bool // whether the server has refused a WatchList, so that watches send lists instead
	all         rare        // counts of all phases together
	early, lost atomic.Int64

	connectionsMu sync.Mutex
	connections   map[*connection]struct{}

	drawMu sync.Mutex
	draw   *rand.Rand

	mu      sync.Mutex
	counted tally // counts of all phases together
	ledgers atomic.Pointer[[]*ledger]
	running struct{ start, end time.Time }
}

var _ load.Load = (*Watches)(nil)

type templates struct {
	all         *request.Templates
	watch, list *request.Template
}

// New returns a load of kind "watches". It sends nothing yet.
func New(t load.Target, l scenario.Load, pacer arrival.Pacer, objects Objects) (*Watches, error) {
	l.Count = t.Share.Part(l.Count)
	if l.Count <= 0 {
		return nil, fmt.Errorf("load %s: count of watches must be over 0", l.Name)
	}
	all, err := request.NewTemplates(t)
	if err != nil {
		return nil, fmt.Errorf("load %s: %w", l.Name, err)
	}
	w := &Watches{
		load: l, objects: objects, pacer: pacer, endpoint: all.Endpoint(),
		roster: newRoster(l.Count), watchers: make([]watcher, l.Count),
		phases: load.NewPhases(newWatchStats), base: time.Now(), exposed: newExposed(time.Now()),
		samples: t.Samples.Streams(l.Name), stalls: t.Stalls, share: t.Share, pause: t.Pause,
		queue: make(chan *watcher, l.Count), allOpen: make(chan struct{}),
		connections: map[*connection]struct{}{}, draw: rand.New(rand.NewPCG(uint64(t.Seed), 0x7761746368+uint64(t.Share.Index))),
	}
	w.ledgers.Store(new([]*ledger))
	watchType, listType := accept(l.Encoding, l.Form)
	w.templates = templates{all, all.New("GET", watchType, "", nil), all.New("GET", listType, "", nil)}
	for i := range w.watchers {
		v := &w.watchers[i]
		v.set, v.id, v.slow = w, i, isSlow(t.Share.Number(i), l.Slow.Fraction)
		w.slow += bools.Int(v.slow)
		v.machine = listwatch.Machine{Backoff: listwatch.Backoff(), State: listwatch.List, WaitExpired: true}
	}
	return w, collector{w}.register(t.Registerer)
}

// isSlow reports whether watch i is slow. The slow watches are spread evenly over all watches.
func isSlow(i int, fraction float64) bool {
	return int64(float64(i+1)*fraction) > int64(float64(i)*fraction)
}

// now returns the time since New. All times in this package are relative to New.
func (w *Watches) now() time.Duration { return time.Since(w.base) }

func (w *Watches) since(t time.Time) time.Duration { return t.Sub(w.base) }

func (w *Watches) random() float64 {
	w.drawMu.Lock()
	defer w.drawMu.Unlock()
	return w.draw.Float64()
}

// Prepare creates the load's objects, or finds the resource of existing ones.
func (w *Watches) Prepare(ctx context.Context) error {
	if err := w.objects.Prepare(ctx); err != nil {
		return err
	}
	w.requests = newRequests(w.templates.all.Prefix(), w)
	return nil
}

// BeginPhase begins a phase. Deliveries belong to the phase in which the write was created.
func (w *Watches) BeginPhase(name string, at time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.gather()
	w.endPhase()
	w.phases.Begin(name, at)
}

// endPhase records how many watches were due and how many were open at the end of the phase. If the load has already
// ended, endPhase does nothing. The caller holds mu.
func (w *Watches) endPhase() {
	if w.running.end.IsZero() {
		now := w.phases.Now()
		now.openAtEnd, now.dueAtEnd = w.Open(), w.dueBy(time.Now())
	}
}

// openWithin is the time within which a watch should be open after its arrival was due. It equals SIG Scalability's
// latency SLO for requests for single objects.
const openWithin = time.Second

// dueBy returns how many watches should be open at the given time. The schedule starts when the load starts, not when
// the initial list has arrived, so a slow list makes watches late. The caller holds mu.
func (w *Watches) dueBy(at time.Time) int {
	if w.running.start.IsZero() {
		return 0
	}
	elapsed := w.pause.State().Elapsed(w.running.start, at) - openWithin
	if elapsed < 0 {
		return 0
	}
	due := min(w.pacer.Due(elapsed), int64(w.load.Count)*w.share.Step()) // of all workers
	return min(w.share.Part(int(due)), w.load.Count)
}

// gather adds to the current phase the counts of all connections since the previous gather. The caller holds mu.
func (w *Watches) gather() {
	w.connectionsMu.Lock()
	connections := slices.Collect(maps.Keys(w.connections))
	w.connectionsMu.Unlock()
	var sum tally
	for _, l := range connections {
		over := l.over() // check this before take, so that no count is missed
		sum.add(l.take())
		if over {
			l.countSamples() // the read loop, which otherwise calls it, has ended
			w.connectionsMu.Lock()
			delete(w.connections, l)
			w.connectionsMu.Unlock()
		}
	}
	w.counted.add(sum)
	w.phases.Now().tally.add(sum)
}

// totals returns the counts so far, summed over all phases.
func (w *Watches) totals() totals {
	w.mu.Lock()
	w.gather()
	t := totals{tally: w.counted}
	w.mu.Unlock()
	t.delivered += w.early.Load()
	t.lost, t.malformed = w.lost.Load(), w.all.malformed.Load()
	t.duplicated, t.reordered = w.all.duplicated.Load(), w.all.reordered.Load()
	t.relists, t.reconnects = w.all.relists.Load(), w.all.reconnects.Load()
	return t
}

// Open returns the number of watches that are established now.
func (w *Watches) Open() int { return int(w.open.Load()) }

// AllOpen returns a channel that is closed when every watch has been established at least once.
func (w *Watches) AllOpen() <-chan struct{} { return w.allOpen }

// Backlog returns the number of bytes that the watches' connections have received but not read yet.
func (w *Watches) Backlog() int64 {
	w.connectionsMu.Lock()
	defer w.connectionsMu.Unlock()
	var sum int64
	for l := range w.connections {
		sum += l.conn.Backlog()
	}
	return sum
}

const (
	drainLook = 50 * time.Millisecond
	// longestDrain is the maximum length of Drain, as a multiple of the parameter `quiet`. This limit ends a Drain
	// during which the server refuses watches again and again.
	longestDrain = 12
)

// progress is a snapshot of the counts that Drain watches. If two successive snapshots are equal, nothing arrived
// between them.
type progress struct{ awaited, open, events int64 }

// drained returns the current progress. It counts events only while not all watches are open, because a watch that
// opens may receive initial events. Later events may be bookmarks or writes of other clients, which are not progress.
func (w *Watches) drained() (now progress) {
	for _, l := range *w.ledgers.Load() {
		now.awaited += l.awaited()
	}
	if now.open = w.open.Load(); now.open < int64(w.load.Count) {
		now.events = w.totals().events
	}
	return now
}

// Drain waits until every expected event has been delivered, until no event has arrived for the quiet time, or until
// longestDrain times the quiet time has passed. Call it after the last write. Deliveries that are still missing then
// count as lost. Drain returns their number. Time in which this process did not run does not count as quiet, because
// the process could not receive events.
func (w *Watches) Drain(ctx context.Context, quiet time.Duration) (lost int64, err error) {
	look := time.NewTicker(drainLook)
	defer look.Stop()
	began := time.Now()
	last, calm := w.drained(), time.Duration(0)
	for {
		now := w.drained()
		if calm += drainLook; now != last {
			last, calm = now, 0
		}
		if now.awaited == 0 || calm > quiet || time.Since(began) >= longestDrain*quiet {
			for _, l := range *w.ledgers.Load() {
				w.lost.Add(l.giveUp())
				expected, delivered := l.count(nil, nil)
				lost += expected - delivered
			}
			return lost, nil
		}
		select {
		case <-look.C:
		case <-ctx.Done():
			return now.awaited, context.Cause(ctx)
		}
	}
}

// Live returns the number of open watches and of deliveries.
func (w *Watches) Live() load.Live {
	return load.Live{Open: w.Open(), Delivered: w.totals().delivered}
}

// Results returns the results of each phase in which the load ran. The results are final after Drain.
func (w *Watches) Results() map[string]result.Watches {
	byPhase := map[string]result.Watches{}
	w.each(func(name string, r result.Watches, s *watchStats, slowest *latency.Histogram) {
		r.OpenLatency, r.SlowestPerWatch = s.openLatency.Latency(), slowest.Latency()
		r.Delivery, r.External = s.delivery.Latency(), s.external.Latency()
		byPhase[name] = r
	})
	return byPhase
}

// Parts returns this worker's results by phase.
func (w *Watches) Parts() []load.Part {
	var all []load.Part
	w.each(func(name string, r result.Watches, s *watchStats, slowest *latency.Histogram) {
		all = append(all, load.Part{Phase: name, Watches: &load.WatchesPart{
			Sums: r, OpenLatency: s.openLatency.Counts(), SlowestPerWatch: slowest.Counts(),
			Delivery: s.delivery.Counts(), External: s.external.Counts(),
		}})
	})
	return all
}

// each calls f for every phase in which the load ran, with the sums and the distribution of the watches' slowest
// deliveries.
func (w *Watches) each(f func(name string, r result.Watches, s *watchStats, slowest *latency.Histogram)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.gather()
	start, end := w.running.start, w.running.end
	if start.IsZero() {
		return
	}
	ended := !end.IsZero()
	if !ended {
		end = time.Now()
	}
	now := w.phases.Now()
	w.phases.Each(start, end, func(name string, length time.Duration, s *watchStats) {
		if length <= 0 || name == "" {
			return
		}
		r, slowest := w.sums(s)
		if !ended && s == now {
			r.Open, r.Due = w.Open(), w.dueBy(end)
		}
		f(name, r, s, slowest)
	})
}

// AddTo adds the results to the phases of m.
func (w *Watches) AddTo(m *result.Measurements) {
	load.AddToPhases(m, w.Results(), func(p *result.Phase, seen result.Watches) { p.Watches = append(p.Watches, seen) })
}

// see sets w.newest to rv if rv is newer. New watches start at w.newest.
func (w *Watches) see(rv uint64) { atomicmax.Raise(&w.newest, rv) }
