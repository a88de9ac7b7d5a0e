package request

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stormglass/stormglass/loadgen/internal/apiclient/h2conn"
	"github.com/stormglass/stormglass/loadgen/internal/latency"
	"github.com/stormglass/stormglass/loadgen/internal/load"
	"github.com/stormglass/stormglass/loadgen/internal/load/arrival"
	"github.com/stormglass/stormglass/loadgen/internal/samples"
	"github.com/stormglass/stormglass/loadgen/internal/spans"
	"github.com/stormglass/stormglass/loadgen/internal/stall"
	"github.com/stormglass/stormglass/loadgen/internal/wakeup"
	"github.com/stormglass/stormglass/loadgen/result"
)

// together is the maximum number of consecutive requests on the same connection.
const together = 8

// batch is the maximum number of arrivals that the dispatcher handles before it writes the queued requests to the
// connections.
const batch = 64

// engine sends a request at each arrival of a schedule, independently of earlier requests (an open loop). One
// dispatcher goroutine sleeps until the next arrival is due, lets the operation fill in the request, and opens a stream
// on a connection of the pool. It never waits for the network. The read loops of the connections record the responses.
// A sweeper goroutine cancels requests that have exceeded their timeout.
//
// If no stream is free, the request waits in the dispatcher's queue; this wait is its connect time. If maxInFlight
// requests are in flight or waiting, the arrival counts as unsent, and its request is never sent.
//
// Memory does not grow with the number of requests. The engine has up to maxInFlight flights of about 1 KB, plus the
// buffers of the operation. For each phase and kind of request it has four histograms of about 150 KB, and a fifth if a
// request waited for a stream.
type engine struct {
	pacer       arrival.Pacer
	maxInFlight int64
	timeout     time.Duration
	kinds       []Kind
	op          Operation              // nil in a load of type Calls
	pool        *h2conn.Pool           // nil in a load of type Calls
	deferred    bool                   // whether the dispatcher, not the read loops, reads the responses
	phases      *load.Phases[[]*stats] // results by phase and kind of request
	metrics     []*metrics             // Prometheus metrics, by kind of request
	window      window
	samples     *samples.Requests // nil if samples are not recorded
	stalls      *stall.Meter      // nil if stalls are not known
	share       load.Share
	pause       *load.Pause   // nil if there are no pauses
	tracer      *spans.Tracer // nil if no request is traced
	name        string        // name of the load

	start    time.Time
	flights  flights
	inFlight atomic.Int64  // number of requests in flight or waiting; only the dispatcher increases it
	ended    atomic.Bool   // whether the load has ended, so that there are no further arrivals
	dry      atomic.Bool   // whether the schedule has ended, so that there are no further arrivals
	last     atomic.Int64  // when the load ended, in nanoseconds since start; 0 while the load runs
	dried    atomic.Int64  // when the schedule ended (see runDry), in nanoseconds since start; 0 before
	over     chan struct{} // closed when the schedule and all requests have ended
	closing  sync.Once     // makes sure that the channel over is closed once
	woken    chan struct{}
	wakeup   *wakeup.Wakeup // ends the dispatcher's sleep, like woken

	// Only the dispatcher uses these fields.
	n        int64 // number of the next arrival
	due      time.Duration
	before   time.Duration    // due time of the previous arrival
	first    time.Duration    // due time of the first arrival
	pauses   *load.PauseState // state of the pause when the dispatcher last checked it
	moved    time.Duration    // sum of the pauses that have delayed arrivals
	round    int              // number of arrivals since the last wake-up
	spare    []*flight
	again    []*flight      // memory that collect reuses
	conn     *h2conn.Conn   // last connection used since the last wake-up; may be nil
	together int            // number of consecutive requests on conn
	queued   []*h2conn.Conn // connections with queued requests
	queue    fifo
	readAll  time.Duration   // when all connections were last read
	failures int64           // number of failed dials when the head of the queue began to wait
	freed    <-chan struct{} // closed when the head of the queue can be tried again; nil if there is no need to wait

	mu         sync.Mutex
	begun, end time.Time // period over which the results compute rates
}

func newEngine(kinds []Kind, pacer arrival.Pacer, all []*metrics, maxInFlight int64, timeout time.Duration) *engine {
	e := &engine{
		pacer: pacer, maxInFlight: maxInFlight, timeout: timeout, kinds: kinds, metrics: all,
		phases: load.NewPhases(func() *[]*stats {
			kinds := make([]*stats, len(all))
			for i := range kinds {
				kinds[i] = newStats(timeout)
			}
			return &kinds
		}),
		window: window{latency: latency.New(2 * timeout)},
		woken:  make(chan struct{}, 1),
		over:   make(chan struct{}),
	}
	e.flights.init()
	return e
}

func (e *engine) now() time.Duration { return time.Since(e.start) }

func (e *engine) wake() {
	select {
	case e.woken <- struct{}{}:
	default: // a wake-up is pending
	}
	e.wakeup.Ring()
}

// of sets the fields that depend on the target t and the load's name.
func (e *engine) of(t load.Target, name string) {
	e.samples, e.stalls, e.share, e.pause = t.Samples.Requests(name), t.Stalls, t.Share, t.Pause
	e.tracer, e.name = t.Tracer, name
	e.n = t.Share.First()
}

func (e *engine) begin(ctx context.Context) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.start = load.StartOf(ctx)
	e.begun = e.start
}

// finish records the end of the time in which arrivals were due. Rates are computed over that time. Of several calls,
// the one with the earliest end applies.
func (e *engine) finish(end time.Duration) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if at := e.start.Add(end); e.end.IsZero() || at.Before(e.end) {
		e.end = at
	}
}

// stop records the end of the load. Responses that arrive later do not count as answered in any phase (see came).
func (e *engine) stop(end time.Duration) {
	e.last.Store(int64(max(end, 1)))
	e.finish(end)
}

// runDry records that the schedule has no further arrivals. The time over which rates are computed ends one mean gap
// after the last arrival, so this time contains n gaps for n arrivals. It excludes the wait for the last responses.
func (e *engine) runDry() {
	if n := (e.n - e.share.First()) / e.share.Step(); n > 1 {
		end := e.before + (e.before-e.first)/time.Duration(n-1)
		e.finish(end)
		e.dried.Store(int64(end))
	}
	e.dry.Store(true)
	if e.inFlight.Load() == 0 {
		e.close()
	}
}

// close closes the channel e.over. Call it when the schedule and all requests have ended.
func (e *engine) close() {
	e.closing.Do(func() {
		e.finish(e.now())
		close(e.over)
	})
}

// awaitDue waits until the next arrival is due. It returns false if ctx has ended.
func (e *engine) awaitDue(ctx context.Context, timer *time.Timer) bool {
	for ctx.Err() == nil {
		paused := e.paused()
		wait := e.due - e.now()
		switch {
		case paused:
			wait = arrival.Never
		case wait <= 0:
			return true
		}
		timer.Reset(wait)
		select {
		case <-timer.C:
		case <-e.pauses.Changed():
		case <-ctx.Done():
		}
	}
	return false
}

// paused reports whether the load is paused. It also delays the next arrival by the pauses that have ended since the
// previous call.
func (e *engine) paused() bool {
	if s := e.pause.State(); s != e.pauses {
		e.pauses = s
		moved := s.Lost(e.start)
		if e.due != arrival.Never {
			e.due += moved - e.moved
		}
		e.moved = moved
	}
	return e.pauses.Paused()
}

// next returns when the next arrival is due, including the delay by pauses.
func (e *engine) next() time.Duration {
	due := e.pacer.At(e.n)
	if due >= arrival.Never-e.moved {
		return arrival.Never
	}
	return due + e.moved
}

// run sends requests until ctx ends, and returns when all requests have ended.
func (e *engine) run(ctx context.Context) {
	e.begin(ctx)
	e.wakeup = wakeup.New()
	defer e.wakeup.Close()
	over := make(chan struct{})
	var sweeper sync.WaitGroup
	sweeper.Go(func() { e.sweep(over) })
	sweeper.Go(func() { e.followPauses(over) })
	e.dispatch(ctx)
	close(over)
	sweeper.Wait()
}

// followPauses wakes the dispatcher when a pause begins or ends, until `over` is closed.
func (e *engine) followPauses(over <-chan struct{}) {
	for s := e.pause.State(); s != nil; s = e.pause.State() {
		select {
		case <-s.Changed():
			e.wake()
		case <-over:
			return
		}
	}
}

// sweep cancels open flights whose deadline has passed, until `over` is closed.
func (e *engine) sweep(over <-chan struct{}) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		f, wait := e.flights.expired(e.now(), e.timeout)
		if f != nil {
			f.stream.CancelWith(load.ErrTimeout)
			e.flights.unpin(f)
			continue
		}
		timer.Reset(wait)
		select {
		case <-timer.C:
		case <-over:
			return
		}
	}
}

// results returns the results by phase: one for each kind of request that had arrivals in the phase.
func (e *engine) results(loadName string) map[string][]result.Requests {
	byPhase := map[string][]result.Requests{}
	e.each(loadName, func(phase string, r result.Requests, s *stats) {
		s.addLatencies(&r)
		byPhase[phase] = append(byPhase[phase], r)
	})
	return byPhase
}

func (e *engine) parts(loadName string) []load.Part {
	var all []load.Part
	e.each(loadName, func(phase string, r result.Requests, s *stats) {
		if n := len(all); n == 0 || all[n-1].Phase != phase {
			all = append(all, load.Part{Phase: phase})
		}
		last := &all[len(all)-1]
		last.Requests = append(last.Requests, s.part(r))
	})
	return all
}

// each calls f for every phase and kind of request that had arrivals. r contains only counts; the distributions are in
// s.
func (e *engine) each(loadName string, f func(phase string, r result.Requests, s *stats)) {
	e.mu.Lock()
	begun, end := e.begun, e.end
	e.mu.Unlock()
	if end.IsZero() {
		end = time.Now()
	}
	backlog := make([]int64, len(e.kinds)) // at the end of the previous phase
	e.phases.Each(begun, end, func(name string, length time.Duration, all *[]*stats) {
		for i, s := range *all {
			r := s.sums(length, backlog[i])
			if backlog[i] = r.Backlog; r.Offered == 0 {
				continue
			}
			k := e.kinds[i]
			r.Load, r.Verb, r.Resource, r.Variant, r.Tenant = loadName, k.Verb, k.Resource, k.Variant, k.Tenant
			f(name, r, s)
		}
	})
}
