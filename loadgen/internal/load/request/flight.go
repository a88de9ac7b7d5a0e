package request

import (
	"sync"
	"time"

	"github.com/stormglass/stormglass/loadgen/internal/apiclient/h2conn"
	"github.com/stormglass/stormglass/loadgen/internal/load"
	"github.com/stormglass/stormglass/loadgen/internal/stall"
)

// flight is an arrival from its taking up to its end. Its memory is reused. Times are since the load's start.
type flight struct {
	Request
	engine  *engine
	stats   *stats
	metrics *metrics
	stream  h2conn.Stream

	intended, taken, sent time.Duration
	deadline              time.Duration // of the request now under way
	again                 int64         // requests sent after the first
	bytes                 int64

	// Of the answer; the read loop's.
	status    int
	malformed bool

	// Under flights.mu.
	place      place
	prev, next *flight
	pinned     bool  // the sweeper is about to cancel it
	after      place // where it goes then
}

type place int8

const (
	elsewhere place = iota // the dispatcher has it, or its stream is just open
	open                   // in the list that the sweeper looks at
	resent                 // to be sent again
	free
)

// Header, Data and End are its stream's handler.
func (f *flight) Header(h h2conn.Header) { f.status = h.Status }

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
	if err == nil { // else this may be no read loop
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
	// The last thing: Run returns when it is zero.
	if e.inFlight.Add(-1) == 0 {
		if e.dry.Load() {
			e.close()
		}
		if e.ended.Load() {
			e.wake()
		}
	}
}

// account records the end of a flight.
func (e *engine) account(f *flight, o load.Outcome, end time.Duration, own ownDelay) {
	f.stats.record(f, o, end, own)
	e.came(f.Kind, o, end)
	f.metrics.record(f, o, end)
	took := end - f.intended
	e.window.latency.Record(took)
	if o.Success() {
		e.window.achieved.Add(1)
		e.samples.Succeeded(took, own.all())
	} else {
		e.samples.Failed(o.String(), took, own.all())
	}
}

// came counts an answer in the phase in which it arrived. Answers after the end of the load belong to no phase.
func (e *engine) came(kind int, o load.Outcome, end time.Duration) {
	if last := e.last.Load(); last == 0 || end <= time.Duration(last) {
		dried := e.dried.Load()
		(*e.phases.At(e.start.Add(end)))[kind].came(o, dried > 0 && end > time.Duration(dried))
	}
}

// flights holds the open flights by deadline, flights to be sent again, and flights free for another arrival.
type flights struct {
	mu     sync.Mutex
	open   flight // the ends of a ring: open.next is the oldest
	resent []*flight
	free   []*flight
}

func (l *flights) init() { l.open.prev, l.open.next = &l.open, &l.open }

// track puts a flight with an open stream in the sweeper's list, unless it has ended already.
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

// settle is called at the end of a flight's stream.
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

// put is called with mu held.
func (l *flights) put(f *flight, to place) {
	switch f.place = to; to {
	case resent:
		l.resent = append(l.resent, f)
	case free:
		l.free = append(l.free, f)
	}
}

// expired returns an open flight past its deadline, pinned until unpin, or the time to wait for the next.
func (l *flights) expired(now, timeout time.Duration) (*flight, time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	f := l.open.next
	if f == &l.open {
		return nil, timeout // a new one has it all before it
	}
	if wait := f.deadline - now; wait > 0 {
		return nil, wait
	}
	f.prev.next, f.next.prev = f.next, f.prev
	f.place, f.pinned, f.after = elsewhere, true, elsewhere
	return f, 0
}

// openFor counts the open flights whose arrival was intended at least so long ago.
func (l *flights) openFor(d, now time.Duration) (n int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for f := l.open.next; f != &l.open && now-f.intended >= d; f = f.next {
		n++
	}
	return n
}

// unpin follows the cancelling. A stream that ends by itself settles its flight.
func (l *flights) unpin(f *flight) {
	l.mu.Lock()
	defer l.mu.Unlock()
	f.pinned = false
	if f.after != elsewhere {
		l.put(f, f.after)
	}
}

// collect moves free and resent flights to the dispatcher's own lists.
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

// ownDelay is how much of a request's latency may be the generator's own.
type ownDelay struct {
	lag     time.Duration // until it was taken up
	stalled time.Duration // of the time after that: the stall during or just before its end, or the wait of its answer to be read
	burst   bool          // that stall held up enough arrivals for a burst
}

func (d ownDelay) all() time.Duration { return d.lag + d.stalled }

// failed reports whether our own delay may have caused a failure: a timeout if more than half of its time was
// ours, another failure if it is in the burst after a stall. A refused connection never is.
func (d ownDelay) failed(o load.Outcome, latency time.Duration) bool {
	switch {
	case o == load.TimedOut:
		return 2*d.all() > latency
	case o == load.Refused:
		return false
	}
	return d.burst && 2*d.stalled > latency-d.lag
}

// ownDelay returns our own delay of a flight that ends at end. waited is how long its answer waited to be read.
func (e *engine) ownDelay(f *flight, end, waited time.Duration) ownDelay {
	late := e.stalls.Late(e.start.Add(end))
	return ownDelay{
		lag:     f.taken - f.intended,
		stalled: min(max(late, waited), end-f.taken),
		burst:   late >= stall.Long,
	}
}

// ownBacklog reports whether the due arrival without a free slot is part of a burst that we made.
func (e *engine) ownBacklog(now time.Duration) bool {
	return now-e.due >= stall.Long || e.stalls.Late(e.start.Add(now)) >= stall.Long
}
