package watch

import (
	"math/bits"
	"sync"
	"sync/atomic"
	"time"
)

// ledger is the account of one stream of measured writes: which were acknowledged, and which watch has delivered
// which. It has no clock and no I/O; times count from an origin that the caller chooses.
//
// What must be delivered. Resource versions of one resource are comparable integers, in the order of the writes. A
// write that was acknowledged with version r must be delivered, exactly once, by every watch that was established
// from a version below r. The time at which the watch was established does not matter, since a watch delivers all
// changes after its version. A watch owes this as long as its set runs, also while it is disconnected: it resumes
// from the last version it saw and may miss nothing. After a 410 it must list again; the protocol then skips what
// lies between, and a controller would find the state, not the changes, in the list. Those changes count as lost
// here, because the ledger measures undelivered events.
//
// A write that was not acknowledged (timeout, lost connection, 409, 429, 5xx) may have happened or not. Its
// delivery is not expected, and is not a fault.
//
// Bounded memory: a ring of the latest writes, each with a bit for each watch: size x (watches/8 + 100) bytes, at
// 2,000 watches and 1,024 slots 360 KB. A write whose slot is needed for a newer one is given up: deliveries that
// are missing then are lost, and later deliveries are Late. A write that is still in flight is never given up: the
// newer one is not sent.
//
// Cost: the delivery of an acknowledged write takes no lock. It finds the write, which is never used for another,
// and sets its bit.
type ledger struct {
	id      string
	watches *roster
	slots   []atomic.Pointer[write]
	step    int64 // between the numbers of its writes; 0 is 1
	// present returns the deliveries of the current phase, and lost counts deliveries given up. They are set for
	// the writes of another worker and nil for this worker's own.
	present func() *deliveries
	lost    *atomic.Int64

	// closed stops the account: delivery of writes acknowledged later is not expected.
	closed atomic.Bool
	mu     sync.Mutex
	acks   map[*deliveries]int64 // acknowledged writes
}

type write struct {
	seq   int64
	stats *deliveries
	seen  []atomic.Uint64 // a bit for each watch

	// state is the earliest time of the acknowledgement, or one of those below.
	state atomic.Int64
	mu    sync.Mutex
	// rv is the write's version, of its acknowledgement or an earlier delivery. Under mu while in flight.
	rv uint64
	// ackLate is how long before it was seen the acknowledgement may have come.
	ackLate time.Duration
	// Deliveries before the acknowledgement; earlySlow counts slow watches.
	early, earlySlow int64
	// pending are deliveries before the notice of another worker's acknowledgement. uncertain bounds the error of
	// its time.
	pending   []pending
	uncertain time.Duration

	// counting is held while counting. A write that all have delivered is not counted again until a watch joins.
	counting sync.Mutex
	given    int64 // deliveries given up, as already counted
	whole    int64 // deliveries, if all that are owed; 0 if not known
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

// begin opens the account of a write before it is sent, in order of seq. It fails if the slot's write is still in
// flight. given is the number of deliveries given up of the write that had the slot.
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

// close gives a write up and sets its bits: a concurrent delivery is either counted here or finds the write given
// up.
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

// ack records the acknowledgement with its version, at a time or up to late before it. It returns how many
// deliveries came before, with slow watches separate.
func (l *ledger) ack(seq int64, rv uint64, at, late time.Duration) (early, earlySlow int64) {
	w := l.slot(seq).Load()
	w.mu.Lock()
	defer w.mu.Unlock()
	if l.closed.Load() || rv == 0 {
		w.state.Store(unknown)
		return 0, 0
	}
	if w.rv != 0 && w.rv != rv {
		// Another client's write on the same object left our stamp in place.
		for i := range w.seen {
			w.seen[i].Store(0)
		}
		w.early, w.earlySlow = 0, 0
	}
	w.rv = rv
	w.ackLate = late
	w.state.Store(max(int64(at-late), 1))
	w.stats.beforeAck.Add(w.early)
	w.stats.delivery.RecordN(late, w.early) // at the most
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

// tally counts the watches that owe the delivery of a write and those that have made it. missing, if not nil, gets
// the watches that have not, 64 at a time. The caller holds counting.
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

// count adds up the ring's writes of a phase, or of all phases if stats is nil. missing is as in tally.
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

// giveUp gives up the missing deliveries. It returns how many were not given up before.
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

// giveUp is called with counting held.
func (w *write) giveUp(missing int64) (given int64) {
	given = max(missing-w.given, 0)
	w.given += given
	return given
}
