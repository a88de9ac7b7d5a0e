package watch

import (
	"strconv"
	"time"

	"github.com/stormglass/stormglass/loadgen/internal/load"
)

// With several workers, the watches of each worker must also deliver the writes of the other workers. So each worker
// has a ledger for the writes of every other worker. The ledger records a write at its first delivery or at the notice
// of its acknowledgement (load.Ack), whichever is earlier. It keeps the times of deliveries that arrive before the
// notice. All deliveries belong to the phase in which the write was recorded.

// pending is a delivery of another worker's write that arrived before that worker's notice of the acknowledgement.
type pending struct {
	watch    int
	slow     bool
	at, late time.Duration // arrival time of the event, and the maximum delay that the generator itself caused
}

// ledgerID returns the id of the ledger for the writes of one worker. The id contains the run, so that stamps of other
// runs do not match.
func ledgerID(loadName, run string, worker int) string {
	return loadName + "-" + run + "-" + strconv.Itoa(worker)
}

// newPeers returns new ledgers for the writes of the other workers, by the worker's index.
func (w *Watches) newPeers(loadName string, size int64) (map[int]*ledger, error) {
	peers := map[int]*ledger{}
	for i := range w.share.Of {
		if i == w.share.Index {
			continue
		}
		l, err := w.newLedger(ledgerID(loadName, w.share.Run, i), size)
		if err != nil {
			return nil, err
		}
		l.present, l.lost = func() *deliveries { return w.phases.Now().deliveries }, &w.lost
		peers[i] = l
	}
	return peers, nil
}

// Learn records that a write of another worker was acknowledged.
func (c *Changes) Learn(a load.Ack) {
	l := c.peers[a.From]
	if l == nil {
		return
	}
	w := c.watches
	early, slow := l.learn(a.Seq, a.RV, w.since(a.At), a.Late, a.Uncertain)
	n := int64(len(early)) + slow
	w.early.Add(n)
	w.samples.Delivered(n)
	for _, after := range early {
		w.exposed.observe(after, 1)
	}
	w.see(a.RV)
}

// find returns the write at the place of seq in the ring, or nil if the place is empty. The write may be older or newer
// than seq. In a ledger for another worker's writes, find first records write seq, unless the ring has that write or a
// newer one at the place.
func (l *ledger) find(seq int64) *write {
	w := l.slot(seq).Load()
	if l.present == nil || w != nil && seq <= w.seq {
		return w
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	slot := l.slot(seq)
	if w = slot.Load(); w != nil && seq <= w.seq {
		return w
	}
	if w != nil {
		// If no notice of an acknowledgement has arrived, treat the write as not acknowledged.
		w.state.CompareAndSwap(inFlight, unknown)
		l.lost.Add(l.close(w))
	}
	w = l.newWrite(seq, l.present())
	slot.Store(w)
	return w
}

// learn records that write seq of another worker was acknowledged at the time `at`, or up to `late` earlier.
// `uncertain` is the maximum error of these times. `early` contains the latencies of the deliveries to normal watches
// that arrived before the notice. `slow` is the number of such deliveries to slow watches. Their latencies are not
// measured.
func (l *ledger) learn(seq int64, rv uint64, at, late, uncertain time.Duration) (early []time.Duration, slow int64) {
	w := l.find(seq)
	if w == nil || w.seq != seq {
		return nil, 0 // a newer write has taken the place of write seq
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.state.Load() != inFlight {
		return nil, 0
	}
	if l.closed.Load() || rv == 0 {
		w.state.Store(unknown)
		return nil, 0
	}
	if w.rv != 0 && w.rv != rv {
		for i := range w.seen {
			w.seen[i].Store(0)
		}
		w.pending = nil
	}
	from := max(at-late, 1)
	w.rv, w.ackLate, w.uncertain = rv, late, uncertain
	w.state.Store(int64(from))
	for _, p := range w.pending {
		if p.slow {
			slow++
			continue
		}
		if p.at < from-uncertain {
			w.stats.beforeAck.Add(1)
		}
		after := max(p.at-from, 0) + uncertain
		w.stats.slow(p.watch, after)
		w.stats.delivery.Record(after)
		w.stats.external.Record(after - p.late - late)
		early = append(early, after)
	}
	w.pending = nil
	return early, slow
}
