package traffic

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stormglass/stormglass/loadgen/latency"
	"github.com/stormglass/stormglass/loadgen/pace"
	"github.com/stormglass/stormglass/loadgen/result"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

// operation says what the arrivals of a load are. Which object an arrival
// works on depends on its number and the seed alone, so the same seed makes
// the same sequence, however many arrivals could not be sent.
type operation interface {
	// reserve is called by the dispatcher for every arrival with a free slot,
	// in order. It returns what the arrival works on; false if nothing is free.
	reserve(n int64, intended time.Time) (key int64, ok bool)
	// request makes the request; called by many workers at once.
	request(key int64) *http.Request
	// read reads the answer's body to its end.
	read(key int64, resp *http.Response) error
	// done is told the end of each request that was made, before its slot is
	// free again.
	done(ctx context.Context, key int64, o Outcome, end time.Time)
}

// engine sends the arrivals of a schedule when they are due, whatever became
// of those before: the open loop. A dispatcher sleeps until each arrival's
// intended time and gives it to a worker. Workers are made as they are needed,
// up to maxInFlight, and kept: a worker's stack has grown already. An arrival
// that finds maxInFlight requests open is counted as unsent; it never waits.
//
// Memory: maxInFlight times a worker (about 10 KB with the transport's part)
// and, for each phase, four histograms of about 150 KB. Nothing grows with the
// number of requests.
type engine struct {
	pacer       pace.Pacer
	maxInFlight int64
	timeout     time.Duration
	client      *client
	op          operation
	phases      *Phases[requestStats]
	metrics     requestMetrics
	window      window

	inFlight atomic.Int64
	idle     chan arrival
	workers  sync.WaitGroup

	mu         sync.Mutex
	start, end time.Time
}

type arrival struct {
	key      int64
	intended time.Time
	stats    *requestStats
}

func newEngine(t Target, l scenario.Load, op operation, c *client) (*engine, error) {
	pacer, err := pace.New(l.Arrival, float64(l.Rate), t.Seed)
	if err != nil {
		return nil, fmt.Errorf("load %s: %w", l.Name, err)
	}
	timeout := l.Timeout.D()
	if l.MaxInFlight <= 0 || timeout <= 0 {
		return nil, fmt.Errorf("load %s: maxInFlight and timeout must be over 0", l.Name)
	}
	metrics, err := newRequestMetrics(t.Registerer, l.Name, l.Verb, l.Resource)
	if err != nil {
		return nil, err
	}
	return &engine{
		pacer: pacer, maxInFlight: int64(l.MaxInFlight), timeout: timeout,
		client: c, op: op, metrics: metrics,
		phases: NewPhases(func() *requestStats { return newRequestStats(timeout) }),
		window: window{latency: latency.New(2 * timeout)},
		idle:   make(chan arrival),
	}, nil
}

// run dispatches until ctx ends and waits for the last request in flight.
func (e *engine) run(ctx context.Context) {
	start := time.Now()
	e.mu.Lock()
	e.start = start
	e.mu.Unlock()
	// Requests in flight when ctx ends are no less real: they end by
	// themselves or by their timeout.
	running := context.WithoutCancel(ctx)
	timer := time.NewTimer(0)
	defer timer.Stop()
	var n int64
	late := false
	for ; ; n++ {
		at := e.pacer.At(n)
		if at == pace.Never {
			<-ctx.Done()
			break
		}
		intended := start.Add(at)
		late = !time.Now().Before(intended)
		if !waitUntil(ctx, timer, intended) {
			break
		}
		e.dispatch(running, n, intended)
	}
	end := time.Now()
	if deadline, ok := ctx.Deadline(); ok && deadline.Before(end) {
		end = deadline
	}
	// A dispatcher that was behind at the end has not reached arrivals that
	// were due: they were offered, and not sent.
	for due := e.pacer.Due(end.Sub(start) - 1); late && n < due; n++ {
		e.unsent(e.phases.At(start.Add(e.pacer.At(n))))
	}
	close(e.idle)
	e.workers.Wait()
	e.mu.Lock()
	e.end = end
	e.mu.Unlock()
}

// waitUntil sleeps until t; false if ctx ends before, or at the same time.
func waitUntil(ctx context.Context, timer *time.Timer, t time.Time) bool {
	if end, ok := ctx.Deadline(); ok && !t.Before(end) {
		<-ctx.Done()
		return false
	}
	if wait := time.Until(t); wait > 0 {
		timer.Reset(wait)
		select {
		case <-timer.C:
		case <-ctx.Done():
		}
	}
	return ctx.Err() == nil
}

func (e *engine) dispatch(ctx context.Context, n int64, intended time.Time) {
	stats := e.phases.At(intended)
	if e.inFlight.Load() >= e.maxInFlight {
		e.unsent(stats)
		return
	}
	key, ok := e.op.reserve(n, intended)
	if !ok {
		e.unsent(stats)
		return
	}
	stats.offer(1, 0)
	e.window.offered.Add(1)
	e.inFlight.Add(1) // by the dispatcher only: the bound is exact
	a := arrival{key, intended, stats}
	select {
	case e.idle <- a:
	default:
		e.workers.Go(func() { e.work(ctx, a) })
	}
}

func (e *engine) unsent(stats *requestStats) {
	stats.offer(1, 1)
	e.window.offered.Add(1)
	e.metrics.unsent.Inc()
}

// work sends one arrival after the other until the dispatcher has ended.
func (e *engine) work(ctx context.Context, a arrival) {
	for ok := true; ok; a, ok = <-e.idle {
		sent := time.Now()
		o := e.send(ctx, a.key)
		end := time.Now()
		a.stats.record(o, a.intended, sent, end)
		if o.Success() {
			e.window.achieved.Add(1)
		}
		e.window.latency.Record(end.Sub(a.intended))
		e.metrics.record(o, a.intended, sent, end)
		e.op.done(ctx, a.key, o, end)
		e.inFlight.Add(-1)
	}
}

func (e *engine) send(ctx context.Context, key int64) Outcome {
	ctx, cancel := context.WithTimeout(ctx, e.timeout)
	defer cancel()
	resp, err := e.client.RoundTrip(e.op.request(key).WithContext(ctx))
	if err != nil {
		return failureOf(err, false)
	}
	defer resp.Body.Close()
	if err := e.op.read(key, resp); err != nil {
		return failureOf(err, true)
	}
	return Outcome(resp.StatusCode)
}

// drain reads a body to its end for nothing, through the pooled buffers of
// io.Discard.
func drain(resp *http.Response) error {
	_, err := io.Copy(io.Discard, resp.Body)
	return err
}

// results are the phases in which something was offered.
func (e *engine) results(l scenario.Load) map[string]result.Requests {
	e.mu.Lock()
	start, end := e.start, e.end
	e.mu.Unlock()
	if end.IsZero() {
		end = time.Now()
	}
	byPhase := map[string]result.Requests{}
	e.phases.Each(start, end, func(name string, length time.Duration, s *requestStats) {
		r := s.result(length)
		if r.Offered == 0 {
			return
		}
		r.Load, r.Verb, r.Resource = l.Name, l.Verb, l.Resource
		byPhase[name] = r
	})
	return byPhase
}
