package watch

import (
	"math/bits"
	"sync"
	"sync/atomic"
	"time"
)

// ledger records a sequence of measured writes: which writes were acknowledged, and which watches have delivered each
// write. It uses no clock and no I/O. All times are relative to one time that the caller chooses.
//
// Rules of delivery: resourceVersions of one resource are comparable integers, in the order of the writes. A write that
// was acknowledged with version r must be delivered, exactly once, by every watch that was established from a version
// below r. It does not matter when the watch was established, because a watch delivers all changes after its first
// version. A disconnected watch must deliver the write too: it resumes from the last version that it saw. After a 410,
// a watch must list again. The list does not contain the changes that led to the current state, so the ledger counts
// their deliveries as lost.
//
// A write that was not acknowledged (timeout, lost connection, 409, 429, 5xx) may or may not have been executed. Its
// delivery is neither expected nor an error.
//
// Memory: the ledger is a ring of the latest writes, with one bit per watch in each write. It takes size x (watches/8 +
// 100) bytes: 360 KB for 1,024 writes and 2,000 watches. When a new write needs the place of an old write, the ledger
// gives up the old write: missing deliveries count as lost, and those that arrive later as Late. If the old write is
// still in flight, it stays, and the new write is not sent.
//
// Cost: the delivery of an acknowledged write takes no lock. It looks up the write and sets the watch's bit. A write
// struct is never reused.
type ledger struct {
	id      string
	watches *roster
	slots   []atomic.Pointer[write]
	step    int64 // difference between the numbers of consecutive writes; 0 means 1
	// A ledger for this worker's own writes does not use `present` and `lost`. `present` returns the statistics of the
	// current phase. `lost` counts the deliveries that the ledger has given up.
	present func() *deliveries
	lost    *atomic.Int64

	// closed is true after the end of the load. Watches need not deliver writes that are acknowledged later.
	closed atomic.Bool
	mu     sync.Mutex
	acks   map[*deliveries]int64 // number of acknowledged writes, by phase
}

type write struct {
	seq   int64
	stats *deliveries
	seen  []atomic.Uint64 // one bit for each watch, set when the watch has delivered the write

	// state is the earliest possible time of the acknowledgement, or `inFlight`, `unknown` or `givenUp`.
	state atomic.Int64
	mu    sync.Mutex
	// rv is the version of the write, learned from its acknowledgement or from an earlier delivery. It is 0 if not
	// known. While the write is in flight, mu guards it.
	rv uint64
	// ackLate is the maximum time by which the generator itself delayed the acknowledgement.
	ackLate time.Duration
	// early and earlySlow count deliveries before the acknowledgement, to normal and to slow watches.
	early, earlySlow int64
	// pending and uncertain are for writes of another worker. pending contains the deliveries that arrived before that
	// worker's notice (load.Ack). uncertain is the maximum error of the time in the notice.
	pending   []pending
	uncertain time.Duration

	// counting guards `given`, `whole` and `joined`. Once all watches have delivered a write, tally counts its
	// deliveries again only after another watch has joined.
	counting sync.Mutex
	given    int64 // number of deliveries given up so far
	whole    int64 // number of deliveries, if all expected ones have arrived; otherwise 0
	joined   int64 // result of roster.joins when whole was set
}

const (
	inFlight int64 = 0
	unknown  int64 = -1 // the write failed, or its outcome is unknown
	givenUp  int64 = -2 // a newer write took the place of the write in the ring
)

func newLedger(id string, watches *roster, size int64) *ledger {
	return &ledger{id: id, watches: watches, slots: make([]atomic.Pointer[write], size), acks: map[*deliveries]int64{}}
}

func (l *ledger) slot(seq int64) *atomic.Pointer[write] {
	return &l.slots[seq/max(l.step, 1)%int64(len(l.slots))]
}

// begin records a write before it is sent. Call it in the order of seq. It returns false if the old write at the same
// place of the ring is still in flight. Otherwise it gives up the old write and returns the number of its missing
// deliveries. These are now lost.
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

// close gives up a write and returns the number of its missing deliveries. It sets all bits of the write. A concurrent
// delivery either sets its bit first, so that close counts it, or finds its bit set and the write given up.
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

// ack records that write seq was acknowledged with version rv. The write was acknowledged at `at`, or up to `late`
// earlier. ack returns how many deliveries to normal and to slow watches had arrived before the call.
func (l *ledger) ack(seq int64, rv uint64, at, late time.Duration) (early, earlySlow int64) {
	w := l.slot(seq).Load()
	w.mu.Lock()
	defer w.mu.Unlock()
	if l.closed.Load() || rv == 0 {
		w.state.Store(unknown)
		return 0, 0
	}
	if w.rv != 0 && w.rv != rv {
		// The early deliveries belong to a write by another client. It changed the same object and kept the stamp.
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

// acknowledged returns the number of acknowledged writes in the phase with the given statistics.
func (l *ledger) acknowledged(stats *deliveries) int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.acks[stats]
}

// tally returns how many watches must deliver a write, and how many of them have delivered it. If `missing` is not nil,
// tally calls it with the other watches, as words of 64 bits with one bit per watch. The caller holds w.counting.
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

// count returns the numbers of expected and of actual deliveries of the writes in the ring. It counts the writes of one
// phase or, if stats is nil, of all phases. It passes `missing` to tally.
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

// awaited returns the number of deliveries that have not arrived and that the ledger has not given up.
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

// giveUp gives up all missing deliveries. It returns how many of them were not given up before.
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

// giveUp gives up the given number of missing deliveries of w. It returns how many of them were not given up before.
// The caller holds w.counting.
func (w *write) giveUp(missing int64) (given int64) {
	given = max(missing-w.given, 0)
	w.given += given
	return given
}
