package request

import (
	"sync"
	"time"

	"github.com/stormglass/stormglass/loadgen/internal/apiclient/h2conn"
	"github.com/stormglass/stormglass/loadgen/internal/load"
	"github.com/stormglass/stormglass/loadgen/internal/stall"
)

// flight is an arrival and its requests (several for a list in pages). It begins when the dispatcher handles the
// arrival, and ends with the last request. Flights are reused. Times are relative to the load's start.
type flight struct {
	Request
	engine  *engine
	stats   *stats
	metrics *metrics
	stream  h2conn.Stream

	intended, taken, sent time.Duration
	deadline              time.Duration // deadline of the current request
	again                 int64         // number of requests sent after the first
	bytes                 int64

	// The read loop stores the state of the response in these fields.
	status    int
	malformed bool

	traced trace

	// flights.mu guards these fields.
	place      place
	prev, next *flight
	pinned     bool  // whether the sweeper is about to cancel the flight
	after      place // the list to add the flight to when pinned becomes false
}

type place int8

const (
	elsewhere place = iota // the flight is in none of the lists
	open                   // the flight is in the sweeper's list
	resent                 // the flight's next request must be sent
	free
)

// Header, Data and End implement h2conn.Handler.
func (f *flight) Header(h h2conn.Header) {
	f.status = h.Status
	if f.traced.sampled && f.traced.first == 0 {
		f.traced.first = f.engine.now()
	}
}

func (f *flight) Data(p []byte) {
	f.bytes += int64(len(p))
	if !f.malformed && f.engine.op.Data(&f.Request, f.status, p) != nil {
		f.malformed = true
	}
}

func (f *flight) End(err error) {
	e := f.engine
	end := e.now()
	o := load.Outcome(f.status)
	if err == nil && !f.malformed {
		f.malformed = e.op.Data(&f.Request, f.status, nil) != nil
	}
	switch {
	case err != nil:
		o = load.OutcomeOf(err)
	case f.malformed:
		o = load.Malformed
	}
	var waited time.Duration
	if err == nil { // only the read loop may call Waited; on an error, End may run elsewhere
		end, waited = f.came(end, f.stream.Waited())
	}
	if e.op.Done(&f.Request, o, e.start.Add(end)) {
		f.again++
		f.status, f.malformed = 0, false
		e.flights.settle(f, resent)
		e.wake()
		return
	}
	e.account(f, o, end, e.ownDelay(f, end, waited))
	e.flights.settle(f, free)
	// Decrease inFlight last, because Run returns when it is zero.
	if e.inFlight.Add(-1) == 0 {
		if e.dry.Load() {
			e.close()
		}
		if e.ended.Load() {
			e.wake()
		}
	}
}

// account records the result of a flight that has ended.
func (e *engine) account(f *flight, o load.Outcome, end time.Duration, own ownDelay) {
	f.stats.record(f, o, end, own)
	e.came(f.Kind, o, end)
	f.metrics.record(f, o, end)
	if f.traced.sampled {
		e.trace(f, o, end)
	}
	took := end - f.intended
	e.window.latency.Record(took)
	if o.Success() {
		e.window.achieved.Add(1)
		e.samples.Succeeded(took, own.all())
	} else {
		e.samples.Failed(o.String(), took, own.all())
	}
}

// came counts a request as ended in the phase in which it ended. A request that ends after the load counts as ended in
// no phase.
func (e *engine) came(kind int, o load.Outcome, end time.Duration) {
	if last := e.last.Load(); last == 0 || end <= time.Duration(last) {
		dried := e.dried.Load()
		(*e.phases.At(e.start.Add(end)))[kind].came(o, dried > 0 && end > time.Duration(dried))
	}
}

// flights contains three lists: open flights in the order of their deadlines, flights whose next request must be sent,
// and flights that have ended.
type flights struct {
	mu     sync.Mutex
	open   flight // head of a circular list; open.next is the oldest flight
	resent []*flight
	free   []*flight
}

func (l *flights) init() { l.open.prev, l.open.next = &l.open, &l.open }

// track adds a flight to the sweeper's list after its stream was opened, unless the stream has already ended.
func (l *flights) track(f *flight) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if f.place != elsewhere {
		return
	}
	f.place = open
	f.prev, f.next = l.open.prev, &l.open
	f.prev.next, f.next.prev = f, f
}

// settle moves a flight whose stream has ended from the sweeper's list to the list for the given place.
func (l *flights) settle(f *flight, to place) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if f.place == open {
		f.prev.next, f.next.prev = f.next, f.prev
	}
	if f.pinned {
		f.place, f.after = elsewhere, to
		return
	}
	l.put(f, to)
}

// put adds a flight to the list for the given place. The caller holds mu.
func (l *flights) put(f *flight, to place) {
	switch f.place = to; to {
	case resent:
		l.resent = append(l.resent, f)
	case free:
		l.free = append(l.free, f)
	}
}

// expired returns an open flight whose deadline has passed. The flight is in no list until unpin is called. If there is
// no such flight, expired returns nil and the time until the next deadline.
func (l *flights) expired(now, timeout time.Duration) (*flight, time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	f := l.open.next
	if f == &l.open {
		return nil, timeout // the deadline of a new flight would be timeout from now
	}
	if wait := f.deadline - now; wait > 0 {
		return nil, wait
	}
	f.prev.next, f.next.prev = f.next, f.prev
	f.place, f.pinned, f.after = elsewhere, true, elsewhere
	return f, 0
}

// openFor returns the number of open flights whose intended start is at least d ago.
func (l *flights) openFor(d, now time.Duration) (n int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for f := l.open.next; f != &l.open && now-f.intended >= d; f = f.next {
		n++
	}
	return n
}

// unpin releases a flight that the sweeper has cancelled. If the flight's stream has ended in the meantime, unpin adds
// the flight to the list for f.after.
func (l *flights) unpin(f *flight) {
	l.mu.Lock()
	defer l.mu.Unlock()
	f.pinned = false
	if f.after != elsewhere {
		l.put(f, f.after)
	}
}

// collect appends the free flights to `spare`, and to `again` the flights whose next request must be sent.
func (l *flights) collect(spare, again []*flight) (s, a []*flight) {
	l.mu.Lock()
	defer l.mu.Unlock()
	spare, again = append(spare, l.free...), append(again, l.resent...)
	for _, list := range [...][]*flight{l.free, l.resent} {
		for _, f := range list {
			f.place = elsewhere
		}
	}
	clear(l.free)
	clear(l.resent)
	l.free, l.resent = l.free[:0], l.resent[:0]
	return spare, again
}

// ownDelay is the part of a request's latency that the generator itself may have caused.
type ownDelay struct {
	lag     time.Duration // time from the intended start until the dispatcher handled the arrival
	stalled time.Duration // delay after lag: a stall at the request's end, or the wait until its response was read
	burst   bool          // whether the stall was long enough to cause a burst of arrivals
}

func (d ownDelay) all() time.Duration { return d.lag + d.stalled }

// failed reports whether the generator's own delay may have caused the failure of a request. The delay may have caused
// a timeout if it is more than half of the latency. It may have caused another failure if a stall was long enough for a
// burst of arrivals and took more than half of the time after the lag. It never causes a refused connection.
func (d ownDelay) failed(o load.Outcome, latency time.Duration) bool {
	switch {
	case o == load.TimedOut:
		return 2*d.all() > latency
	case o == load.Refused:
		return false
	}
	return d.burst && 2*d.stalled > latency-d.lag
}

// ownDelay returns how long the generator itself delayed a flight that ended at the time `end`. `waited` is the time
// from the arrival of the response until it was read.
func (e *engine) ownDelay(f *flight, end, waited time.Duration) ownDelay {
	late := e.stalls.Late(e.start.Add(end))
	return ownDelay{
		lag:     f.taken - f.intended,
		stalled: min(max(late, waited), end-f.taken),
		burst:   late >= stall.Long,
	}
}

// ownBacklog reports whether a stall of the generator may be the reason why maxInFlight requests are in flight. Call it
// if this limit keeps an arrival from being sent.
func (e *engine) ownBacklog(now time.Duration) bool {
	return now-e.due >= stall.Long || e.stalls.Late(e.start.Add(now)) >= stall.Long
}
