package watch

import (
	"strconv"
	"time"

	"github.com/stormglass/stormglass/loadgen/internal/load"
)

// The watches of all workers must deliver the writes of each worker. Each worker has a ledger for the writes of every other
// worker: a write is recorded when its first delivery or the notice of its acknowledgement arrives, whichever comes first.
// Deliveries before the notice are kept with their times. They belong to the phase in which the write was recorded.

// pending is a delivery that arrived before the notice of the write's acknowledgement.
type pending struct {
	watch    int
	slow     bool
	at, late time.Duration // late: how long the generator may have delayed it
}

// ledgerID returns the id of the ledger for one worker's writes. It includes the run, so that stamps of other runs do not
// match.
func ledgerID(loadName, run string, worker int) string {
	return loadName + "-" + run + "-" + strconv.Itoa(worker)
}

// newPeers returns new ledgers for the other workers' writes, by worker.
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

// Learn records an acknowledged write of another worker.
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

// find returns the write in the slot of seq, which may be a newer write. It records an unknown write of another worker. For
// this worker's own writes it returns nil if the slot is empty.
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
		// A write without a notice was not acknowledged.
		w.state.CompareAndSwap(inFlight, unknown)
		l.lost.Add(l.close(w))
	}
	w = l.newWrite(seq, l.present())
	slot.Store(w)
	return w
}

// learn records the acknowledgement of another worker's write, at a time that may be wrong by uncertain. It returns the
// latencies of the deliveries that arrived before the notice, and the number of those to slow watches, which have no latency.
func (l *ledger) learn(seq int64, rv uint64, at, late, uncertain time.Duration) (early []time.Duration, slow int64) {
	w := l.find(seq)
	if w == nil || w.seq != seq {
		return nil, 0 // a newer write has its slot
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
