package request

import (
	"cmp"
	"context"
	"time"

	"github.com/stormglass/stormglass/loadgen/internal/apiclient/h2conn"
	"github.com/stormglass/stormglass/loadgen/internal/load"
	"github.com/stormglass/stormglass/loadgen/internal/load/arrival"
	"github.com/stormglass/stormglass/loadgen/internal/wakeup"
)

// dispatch sends requests at their arrivals until ctx ends. It returns when no request is in flight.
func (e *engine) dispatch(ctx context.Context) {
	until := arrival.Never
	if deadline, ok := ctx.Deadline(); ok {
		until = deadline.Sub(e.start)
	}
	stop := context.AfterFunc(ctx, func() {
		e.ended.Store(true)
		e.wake()
	})
	defer stop()
	sleep := &sleep{timer: time.NewTimer(time.Hour), wakeup: e.wakeup}
	defer sleep.timer.Stop()

	e.due = e.next()
	last := e.now() // time of the last iteration before the end
	for now := last; !e.ended.Load() && now < until; now = e.now() {
		last = now
		e.receive()
		paused := e.paused()
		for sent := 0; !paused && sent < batch && e.due <= now && e.due < until && !e.ended.Load(); sent++ {
			now = e.arrive()
			last = now
		}
		e.pump()
		e.flush()
		if e.due == arrival.Never && !e.dry.Load() {
			e.runDry()
		}
		wake := e.due
		if paused {
			wake = arrival.Never
		}
		if wake > now {
			sleep.until(e, min(wake, until))
			e.conn = nil // each round begins with the pool's next connection
		}
	}
	<-ctx.Done() // ctx ends about now
	e.ended.Store(true)
	end := min(until, e.now())
	// Due arrivals that a late dispatcher did not handle count as offered and not sent.
	for late := !e.paused() && e.due <= last; late && e.due < end; e.advance() {
		e.unsent(e.op.KindOf(e.n), true)
	}
	e.stop(end)
	// The remaining requests end with their responses or by their timeout.
	for e.inFlight.Load() > 0 {
		e.receive()
		e.pump()
		e.flush()
		if e.inFlight.Load() > 0 {
			sleep.until(e, arrival.Never)
		}
	}
}

func (e *engine) flush() {
	for _, conn := range e.queued {
		conn.Flush()
	}
	clear(e.queued)
	e.queued = e.queued[:0]
}

func (e *engine) advance() {
	if e.n == e.share.First() {
		e.first = e.due
	}
	e.before = e.due
	e.n += e.share.Step()
	e.due = e.next()
}

// arrive sends or queues the request of the due arrival, or counts that arrival as unsent. It returns the current time.
func (e *engine) arrive() time.Duration {
	e.round++
	kind := e.op.KindOf(e.n)
	if e.inFlight.Load() >= e.maxInFlight {
		now := e.now() // lets the caller notice the end of the load in a long series of such arrivals
		e.unsent(kind, e.ownBacklog(now))
		e.advance()
		return now
	}
	f := e.take()
	f.N, f.Kind, f.Key, f.Template = e.n, kind, 0, nil
	f.Path, f.Body, f.Scratch = f.Path[:0], f.Body[:0], f.Scratch[:0]
	if !e.op.Next(e.n, &f.Request) {
		e.spare = append(e.spare, f)
		e.unsent(kind, false)
		e.advance()
		return e.now()
	}
	f.sample(e.tracer)
	now := e.now()
	e.takeUp(f, kind, now)
	f.sent, f.deadline = 0, now+e.timeout
	f.again, f.bytes, f.status, f.malformed = 0, 0, 0, false
	e.advance()
	if e.queue.len() > 0 || !e.send(f, now) {
		e.queue.push(f)
	}
	return now
}

// takeUp assigns the flight f to the arrival that is due. It counts the arrival as offered and in flight.
func (e *engine) takeUp(f *flight, kind int, now time.Duration) {
	f.stats, f.metrics = (*e.phases.At(e.start.Add(e.due)))[kind], e.metrics[kind]
	f.stats.offered.Add(1)
	e.window.offered.Add(1)
	e.inFlight.Add(1)
	f.metrics.flying.Inc()
	f.intended, f.taken = e.due, now
}

// take returns a flight (the state of an arrival and its requests). It reuses a flight that has ended, or creates one.
// There are at most maxInFlight + 1 flights.
func (e *engine) take() *flight {
	if len(e.spare) == 0 {
		e.collect()
	}
	n := len(e.spare)
	if n == 0 {
		return &flight{engine: e}
	}
	f := e.spare[n-1]
	e.spare = e.spare[:n-1]
	return f
}

func (e *engine) collect() {
	e.spare, e.again = e.flights.collect(e.spare, e.again[:0])
	for _, f := range e.again {
		f.deadline = e.now() + e.timeout
		e.queue.push(f)
	}
}

// unsent counts the arrival that is due as not sent. `late` means that the generator's own delay may be the reason.
func (e *engine) unsent(kind int, late bool) {
	s := (*e.phases.At(e.start.Add(e.due)))[kind]
	s.offered.Add(1)
	s.unsent.Add(1)
	if late {
		s.unsentLate.Add(1)
	}
	e.window.offered.Add(1)
	e.metrics[kind].unsent.Inc()
	e.samples.Unsent()
}

// send opens a stream for a request. It returns false if no stream is free. If the request fails, send ends the request
// and returns true.
func (e *engine) send(f *flight, now time.Duration) bool {
	first := f.sent == 0
	if first {
		f.sent = now // the request may end before TryQueue returns
	}
	for {
		conn, err := e.connection()
		if err == nil {
			if err = conn.TryQueue(&f.stream, f.Template, f.Path, f.Body, f); err == nil {
				if n := len(e.queued); n == 0 || e.queued[n-1] != conn {
					e.queued = append(e.queued, conn)
				}
				e.flights.track(f)
				return true
			}
			e.conn = nil // the connection has just gone away or become full; take another one from the pool
			continue
		}
		if first {
			f.sent = 0
		}
		if err != h2conn.ErrBusy {
			e.give(f, err)
			return true
		}
		if e.freed == nil {
			e.freed = e.pool.Changed()
			e.failures, _ = e.pool.Failed()
		}
		return false
	}
}

// connection returns the connection for the next request. It returns the same connection for a few consecutive requests
// (see the constant together), because one TLS record and one system call can then send all of them.
func (e *engine) connection() (conn *h2conn.Conn, err error) {
	if e.conn != nil && e.together < together {
		e.together++
		return e.conn, nil
	}
	e.conn, err = e.pool.TryAcquire()
	e.together = 1
	if e.deferred && err == nil {
		e.conn.ReceiveAfter(goneWithin)
	}
	return e.conn, err
}

// give ends a request that could not be sent. err is the reason.
func (e *engine) give(f *flight, err error) {
	f.sent = cmp.Or(f.sent, e.now())
	f.End(err)
}

// pump sends the queued requests: next pages of lists, and arrivals for which no stream was free. If a dial has failed
// since they were queued, pump ends them with the dial's error.
func (e *engine) pump() {
	e.collect()
	if e.queue.len() == 0 {
		e.freed = nil
		return
	}
	if n, err := e.pool.Failed(); e.freed != nil && n != e.failures {
		e.freed = nil
		for range e.queue.len() {
			e.give(e.queue.pop(), err)
		}
		return
	}
	e.freed = nil
	for e.queue.len() > 0 {
		f, now := e.queue.head(), e.now()
		if now >= f.deadline {
			e.give(e.queue.pop(), load.ErrTimeout)
			continue
		}
		if !e.send(f, now) {
			return
		}
		e.queue.pop()
	}
}

// fifo is a queue of flights (requests that wait to be sent). It reuses its memory.
type fifo struct {
	items []*flight
	at    int
}

func (q *fifo) len() int { return len(q.items) - q.at }

func (q *fifo) head() *flight { return q.items[q.at] }

func (q *fifo) push(f *flight) {
	if q.at > 0 && len(q.items) == cap(q.items) {
		n := copy(q.items, q.items[q.at:])
		clear(q.items[n:])
		q.items, q.at = q.items[:n], 0
	}
	q.items = append(q.items, f)
}

func (q *fifo) pop() *flight {
	f := q.items[q.at]
	q.items[q.at] = nil
	if q.at++; q.at == len(q.items) {
		q.items, q.at = q.items[:0], 0
	}
	return f
}

// Limits of the dispatcher's sleep. A wake-up costs as much CPU as several requests, so the dispatcher sends arrivals
// that are close together at one wake-up. The minimum time between two wake-ups is sleepEach times the number of
// arrivals since the previous one, but at least shortestSleep and at most longestSleep. This delay is part of the
// reported lag. It is at most half a millisecond up to about 10,000 arrivals per second, and at most one millisecond at
// higher rates.
const (
	shortestSleep = 500 * time.Microsecond
	sleepEach     = 100 * time.Microsecond
	longestSleep  = time.Millisecond
)

type sleep struct {
	timer  *time.Timer
	wakeup *wakeup.Wakeup
	last   time.Duration // when the previous wake-up was due; a late wake-up must not lengthen the interval
}

// until sleeps until the time t or until other work arrives, and at least for the minimum time between two wake-ups.
func (s *sleep) until(e *engine, t time.Duration) {
	if e.queue.len() > 0 {
		t = min(t, e.queue.head().deadline)
	}
	if e.deferred {
		t = min(t, e.nextRead())
	}
	interval := max(shortestSleep, min(time.Duration(e.round)*sleepEach, longestSleep))
	t = max(t, s.last+interval)
	e.round = 0
	// Use the select below if a request waits for a stream, because Wait does not notice a freed stream.
	if wait := t - e.now(); wait > 0 && (e.freed != nil || !s.wakeup.Wait(e.start, t)) {
		s.timer.Reset(wait)
		s.wakeup.Set(wait)
		select {
		case <-s.timer.C:
		case <-e.woken:
		case <-e.freed:
		}
	}
	now := e.now()
	s.last = max(min(t, now), now-interval)
}
