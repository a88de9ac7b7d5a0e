package watch

import (
	"math/bits"
	"sync"
	"sync/atomic"
	"time"
)

// ledger records one stream of measured writes: which of them were acknowledged, and which watches have delivered each. It has
// no clock and no I/O; times count from an origin that the caller chooses.
//
// What must be delivered. Resource versions of one resource are comparable integers, in the order of the writes. A write that
// was acknowledged with version r must be delivered, exactly once, by every watch that was established from a version below r.
// The time at which the watch was established does not matter, since a watch delivers all changes after its version. This holds
// as long as the load runs, also while the watch is disconnected: it resumes from the last version it saw and must not miss an
// event. After a 410 it must list again. The protocol then skips the changes in between: the list has the state, not the
// changes. Those changes count as lost here, because the ledger measures undelivered events.
//
// A write that was not acknowledged (timeout, lost connection, 409, 429, 5xx) may have happened or not. Its
// delivery is not expected, and is not a fault.
//
// Bounded memory: a ring of the latest writes, each with a bit for each watch: size x (watches/8 + 100) bytes, at 2,000 watches
// and 1,024 slots 360 KB. A write whose slot is needed for a newer write is given up: deliveries that are missing then are
// lost, and later deliveries are Late. A write that is still in flight is never given up; the newer write is not sent instead.
//
// Cost: a delivery of an acknowledged write takes no lock. It finds the write and sets the watch's bit. A write struct is never
// reused.
type ledger struct {
	id      string
	watches *roster
	slots   []atomic.Pointer[write]
	step    int64 // between the numbers of consecutive writes; 0 means 1
	// present returns the deliveries of the current phase, and lost counts deliveries given up. They are set for
	// the writes of another worker and nil for this worker's own.
	present func() *deliveries
	lost    *atomic.Int64

	// closed is set at the end of the load. The delivery of writes that are acknowledged later is not expected.
	closed atomic.Bool
	mu     sync.Mutex
	acks   map[*deliveries]int64 // acknowledged writes
}

type write struct {
	seq   int64
	stats *deliveries
	seen  []atomic.Uint64 // a bit for each watch

	// state is the earliest possible time of the acknowledgement, or one of the constants below.
	state atomic.Int64
	mu    sync.Mutex
	// rv is the write's version, from its acknowledgement or an earlier delivery. mu guards it while the write is in flight.
	rv uint64
	// ackLate is how long the acknowledgement may have waited before the generator saw it.
	ackLate time.Duration
	// Deliveries before the acknowledgement: early to normal watches, earlySlow to slow ones.
	early, earlySlow int64
	// pending are the deliveries that arrived before the notice of another worker's acknowledgement. uncertain bounds the error
	// of the time in that notice.
	pending   []pending
	uncertain time.Duration

	// counting guards the fields below. A write that all watches have delivered is not counted again until a watch joins.
	counting sync.Mutex
	given    int64 // deliveries given up, as already counted
	whole    int64 // number of deliveries once all watches have delivered, otherwise 0
	joined   int64 // roster's generation then
}

const (
	inFlight int64 = 0
	unknown  int64 = -1 // not acknowledged
	givenUp  int64 = -2 // its slot went to a newer one
)

func newLedger(id string, watches *roster, size int64) *ledger {
	return &ledger{id: id, watches: watches, slots: make([]atomic.Pointer[write], size), acks: map[*deliveries]int64{}}
}

func (l *ledger) slot(seq int64) *atomic.Pointer[write] {
	return &l.slots[seq/max(l.step, 1)%int64(len(l.slots))]
}

// begin records a write before it is sent, in order of seq. It returns false if the write in its slot is still in flight. given
// is the number of missing deliveries of the write that had the slot, which are now lost.
func (l *ledger) begin(seq int64, stats *deliveries) (given int64, ok bool) {
	slot := l.slot(seq)
	if old := slot.Load(); old != nil {
		if old.state.Load() == inFlight {
			return 0, false
		}
		given = l.close(old)
	}
	slot.Store(l.newWrite(seq, stats))
	return given, true
}

func (l *ledger) newWrite(seq int64, stats *deliveries) *write {
	stats.ready(l.watches.size())
	return &write{seq: seq, stats: stats, seen: make([]atomic.Uint64, (l.watches.size()+63)/64)}
}

// close gives up a write and sets all its bits, so that a concurrent delivery either is counted here or finds that the write is
// given up.
func (l *ledger) close(w *write) (given int64) {
	if w.state.Swap(givenUp) <= 0 {
		return 0
	}
	w.counting.Lock()
	defer w.counting.Unlock()
	var expected, delivered int64
	l.watches.each(w.rv, func(word int, owing uint64) {
		seen := w.seen[word].Swap(^uint64(0))
		expected += int64(bits.OnesCount64(owing))
		delivered += int64(bits.OnesCount64(owing & seen))
		w.stats.lose(word, owing&^seen)
	})
	w.stats.expected.Add(expected)
	w.stats.delivered.Add(delivered)
	return w.giveUp(expected - delivered)
}

// ack records that a write was acknowledged with version rv, at the given time or up to late before it. It returns how many
// deliveries came earlier, to normal and to slow watches.
func (l *ledger) ack(seq int64, rv uint64, at, late time.Duration) (early, earlySlow int64) {
	w := l.slot(seq).Load()
	w.mu.Lock()
	defer w.mu.Unlock()
	if l.closed.Load() || rv == 0 {
		w.state.Store(unknown)
		return 0, 0
	}
	if w.rv != 0 && w.rv != rv {
		// The early deliveries were of another client's write to the same object, which left our stamp in place.
		for i := range w.seen {
			w.seen[i].Store(0)
		}
		w.early, w.earlySlow = 0, 0
	}
	w.rv = rv
	w.ackLate = late
	w.state.Store(max(int64(at-late), 1))
	w.stats.beforeAck.Add(w.early)
	w.stats.delivery.RecordN(late, w.early) // an upper bound
	w.stats.external.RecordN(0, w.early)
	l.mu.Lock()
	l.acks[w.stats]++
	l.mu.Unlock()
	return w.early, w.earlySlow
}

// fail records that the write was rejected or that its outcome is unknown.
func (l *ledger) fail(seq int64) {
	w := l.slot(seq).Load()
	w.mu.Lock()
	w.state.Store(unknown)
	w.mu.Unlock()
}

// acknowledged returns how many writes of a phase were acknowledged.
func (l *ledger) acknowledged(stats *deliveries) int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.acks[stats]
}

// tally counts the watches that must deliver a write and those that have. If missing is not nil, tally calls it with the
// watches that have not, 64 at a time. The caller holds counting.
func (l *ledger) tally(w *write, missing func(word int, watches uint64)) (expected, delivered int64) {
	if w.state.Load() <= 0 {
		return 0, 0
	}
	generation := l.watches.joins()
	if w.whole > 0 && w.joined == generation {
		return w.whole, w.whole
	}
	l.watches.each(w.rv, func(word int, owing uint64) {
		seen := w.seen[word].Load()
		expected += int64(bits.OnesCount64(owing))
		delivered += int64(bits.OnesCount64(owing & seen))
		if missing != nil && owing&^seen != 0 {
			missing(word, owing&^seen)
		}
	})
	if expected == delivered {
		w.whole, w.joined = expected, generation
	}
	return expected, delivered
}

// count adds up the expected and actual deliveries of a phase's writes in the ring, or of all phases if stats is nil. missing
// is as in tally.
func (l *ledger) count(stats *deliveries, missing func(word int, watches uint64)) (expected, delivered int64) {
	for i := range l.slots {
		w := l.slots[i].Load()
		if w == nil || stats != nil && w.stats != stats {
			continue
		}
		w.counting.Lock()
		e, d := l.tally(w, missing)
		w.counting.Unlock()
		expected, delivered = expected+e, delivered+d
	}
	return expected, delivered
}

// awaited returns the number of missing deliveries that were not given up.
func (l *ledger) awaited() (n int64) {
	for i := range l.slots {
		if w := l.slots[i].Load(); w != nil {
			w.counting.Lock()
			expected, delivered := l.tally(w, nil)
			n += max(expected-delivered-w.given, 0)
			w.counting.Unlock()
		}
	}
	return n
}

// giveUp gives up all missing deliveries. It returns how many of them had not been given up before.
func (l *ledger) giveUp() (given int64) {
	for i := range l.slots {
		if w := l.slots[i].Load(); w != nil {
			w.counting.Lock()
			expected, delivered := l.tally(w, nil)
			given += w.giveUp(expected - delivered)
			w.counting.Unlock()
		}
	}
	return given
}

// giveUp gives up the missing deliveries of w. It returns how many are new. The caller holds counting.
func (w *write) giveUp(missing int64) (given int64) {
	given = max(missing-w.given, 0)
	w.given += given
	return given
}
