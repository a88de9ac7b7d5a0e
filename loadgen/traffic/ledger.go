package traffic

import (
	"bytes"
	"math/bits"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stormglass/stormglass/loadgen/latency"
)

// ledger is the account of one stream of measured writes: which were
// acknowledged, and which watch has delivered which. It has no clock and no
// I/O.
//
// What must be delivered. Resource versions of one resource are comparable
// integers, in the order of the writes. A write that was acknowledged with
// version r must be delivered, exactly once, by every watch that was
// established from a version below r; at what time it was established does not
// matter, since a watch tells all that came after its version. A watch owes
// this as long as its set runs, also while it is disconnected: it resumes from
// the last version it saw and may miss nothing. After a 410 it must list
// again; the protocol then skips what lies between, and a controller would
// find the state, not the changes, in the list. Those changes are lost here
// all the same: events not delivered are what this measures.
//
// A write that was not acknowledged (timeout, lost connection, 409, 429, 5xx)
// may have happened or not. Nobody owes its delivery, and its delivery is no
// fault either.
//
// Bounded memory: a ring of slots, one for each of the latest writes, with a
// bit for each watch: size x (watches/8 + 130) bytes, at 2,000 watches and
// 1,024 slots 390 KB. A write whose slot is needed for a newer one is given
// up: what is missing then is lost for good, and later deliveries are Late. A
// write that is still in flight is never given up: the newer one is not sent.
type ledger struct {
	id      string
	watches *roster
	size    int64
	slots   []slot

	// closed stops the account: writes acknowledged later are owed by nobody.
	closed atomic.Bool
}

// roster is which watches were established from which version.
type roster struct {
	from []atomic.Uint64 // by watch: the version + 1; 0 until established
}

// owes tells whether a watch must deliver a write of version rv.
func (r *roster) owes(watch int, rv uint64) bool {
	from := r.from[watch].Load()
	return from != 0 && from-1 < rv
}

func (r *roster) join(watch int, rv uint64) { r.from[watch].Store(rv + 1) }

// deliveries is what watches delivered of the writes of one phase.
type deliveries struct {
	delivery *latency.Histogram
	// Of writes whose slots have been given up; the rest is in the slots.
	expected, delivered         atomic.Int64
	duplicated, reordered, late atomic.Int64
	beforeAck                   atomic.Int64
}

type slot struct {
	mu    sync.Mutex
	seq   int64
	state slotState
	stats *deliveries
	acked time.Time
	// rv is the write's version: from its acknowledgement, or from the first
	// delivery if that came before.
	rv    uint64
	early int64    // deliveries before the acknowledgement
	given int64    // deliveries given up, as a metric was told
	seen  []uint64 // a bit for each watch
}

type slotState uint8

const (
	free slotState = iota
	inFlight
	acknowledged
	unknown
)

func newLedger(id string, watches *roster, size int64) *ledger {
	return &ledger{id: id, watches: watches, size: size, slots: make([]slot, size)}
}

func (l *ledger) slot(seq int64) *slot { return &l.slots[seq%l.size] }

// begin opens the account of a write, before it is sent. It fails if the slot
// holds a write that is still in flight. given is how many deliveries of the
// slot's last write were given up for it.
func (l *ledger) begin(seq int64, stats *deliveries) (given int64, ok bool) {
	s := l.slot(seq)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.state == inFlight {
		return 0, false
	}
	if s.state == acknowledged {
		expected, delivered := l.tally(s)
		s.stats.expected.Add(expected)
		s.stats.delivered.Add(delivered)
		given = s.giveUp(expected - delivered)
	}
	if s.seen == nil {
		s.seen = make([]uint64, (len(l.watches.from)+63)/64)
	}
	clear(s.seen)
	s.seq, s.state, s.stats, s.rv, s.early, s.given = seq, inFlight, stats, 0, 0, 0
	return given, true
}

// stamp is what marks the write of that number.
func (l *ledger) stamp(seq int64) string { return l.id + ":" + strconv.FormatInt(seq, 10) }

// ack says that the write was acknowledged, with its version. It returns how
// many deliveries came before.
func (l *ledger) ack(seq int64, rv uint64, at time.Time) (early int64) {
	s := l.slot(seq)
	s.mu.Lock()
	defer s.mu.Unlock()
	if l.closed.Load() || rv == 0 {
		s.state = unknown
		return 0
	}
	if s.early > 0 && s.rv != rv {
		// What was delivered was not this write but another's on the same
		// object, which left our stamp in place.
		clear(s.seen)
		s.early = 0
	}
	s.state, s.rv, s.acked = acknowledged, rv, at
	s.stats.beforeAck.Add(s.early)
	s.stats.delivery.RecordN(0, s.early)
	return s.early
}

// fail says that the write's Outcome is not known, or that it was rejected.
func (l *ledger) fail(seq int64) {
	s := l.slot(seq)
	s.mu.Lock()
	s.state = unknown
	s.mu.Unlock()
}

// delivery is what became of one event with our stamp.
type delivery struct {
	// first: the first one of an acknowledged write, after such a time.
	first bool
	after time.Duration
	// duplicated, reordered: see result.Watches.
	duplicated, reordered bool
}

// deliver takes an event: which watch, which write, which version, when, and
// whether the watch has seen a newer version before.
func (l *ledger) deliver(watch int, seq int64, rv uint64, at time.Time, older bool) (d delivery) {
	if seq < 0 {
		return d
	}
	s := l.slot(seq)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.seq != seq || s.state == free {
		if s.state != free && seq < s.seq {
			s.stats.late.Add(1)
		}
		return d
	}
	if s.state == unknown || s.rv != 0 && s.rv != rv {
		return d // tolerated, or another's write that left our stamp in place
	}
	word, bit := &s.seen[watch/64], uint64(1)<<(watch%64)
	if *word&bit != 0 {
		s.stats.duplicated.Add(1)
		d.duplicated = true
		return d
	}
	*word |= bit
	if older {
		s.stats.reordered.Add(1)
		d.reordered = true
	}
	if s.state == inFlight {
		s.rv = rv
		s.early++
		return d
	}
	d.first, d.after = true, max(at.Sub(s.acked), 0)
	s.stats.delivery.Record(d.after)
	return d
}

// tally counts who owes the delivery of a write, and who has made it. The
// slot's lock is held.
func (l *ledger) tally(s *slot) (expected, delivered int64) {
	if s.state != acknowledged {
		return 0, 0
	}
	for i, word := range s.seen {
		owing := uint64(0)
		for bit := range min(64, len(l.watches.from)-64*i) {
			if l.watches.owes(64*i+bit, s.rv) {
				owing |= 1 << bit
			}
		}
		expected += int64(bits.OnesCount64(owing))
		delivered += int64(bits.OnesCount64(owing & word))
	}
	return expected, delivered
}

// count adds up the writes in the ring that belong to a phase; of all phases
// if stats is nil.
func (l *ledger) count(stats *deliveries) (expected, delivered int64) {
	for i := range l.slots {
		s := &l.slots[i]
		s.mu.Lock()
		if stats == nil || s.stats == stats {
			e, d := l.tally(s)
			expected, delivered = expected+e, delivered+d
		}
		s.mu.Unlock()
	}
	return expected, delivered
}

// giveUp gives up what is missing now, as a drain does at its end. It returns
// how many deliveries were not given up before.
func (l *ledger) giveUp() (given int64) {
	for i := range l.slots {
		s := &l.slots[i]
		s.mu.Lock()
		expected, delivered := l.tally(s)
		given += s.giveUp(expected - delivered)
		s.mu.Unlock()
	}
	return given
}

func (s *slot) giveUp(missing int64) (given int64) {
	given = max(missing-s.given, 0)
	s.given += given
	return given
}

// parseStamp reads "id:seq"; ok is false for anything else.
func parseStamp(stamp []byte) (id []byte, seq int64, ok bool) {
	i := bytes.LastIndexByte(stamp, ':')
	if i < 0 || i+1 == len(stamp) || len(stamp)-i > 19 {
		return nil, 0, false
	}
	for _, c := range stamp[i+1:] {
		if c < '0' || c > '9' {
			return nil, 0, false
		}
		seq = seq*10 + int64(c-'0')
	}
	return stamp[:i], seq, true
}
