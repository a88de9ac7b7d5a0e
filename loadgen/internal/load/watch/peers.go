package watch

import (
	"strconv"
	"time"

	"github.com/stormglass/stormglass/loadgen/internal/load"
)

// The watches of all workers must deliver the writes of each worker. Each worker has a ledger for the writes of every
// other worker: a write's account is opened by its first delivery here or by the notice of its acknowledgement,
// whichever comes first. Deliveries before the notice are kept with their times. They belong to the phase in which the
// first one came.

// pending is a delivery before the notice of the write's acknowledgement.
type pending struct {
	watch    int
	slow     bool
	at, late time.Duration // late: for how long the generator may have held it up
}

// ledgerID returns the id of the ledger for one worker's writes. Stamps of other runs are foreign.
func ledgerID(loadName, run string, worker int) string {
	return loadName + "-" + run + "-" + strconv.Itoa(worker)
}

// newPeers makes the ledgers of the other workers' writes, by worker.
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

// find returns the write in the slot of that number, which may be a newer one. It opens an account for an unknown write
// of another worker. For this worker's own writes it returns nil if the slot is empty.
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
		// One without a notice was not acknowledged.
		w.state.CompareAndSwap(inFlight, unknown)
		l.lost.Add(l.close(w))
	}
	w = l.newWrite(seq, l.present())
	slot.Store(w)
	return w
}

// learn notes the acknowledgement of another worker's write, at a time that may be wrong by uncertain. It returns the
// latencies of the deliveries before the notice, and how many were to slow watches.
func (l *ledger) learn(seq int64, rv uint64, at, late, uncertain time.Duration) (early []time.Duration, slow int64) {
	w := l.find(seq)
	if w == nil || w.seq != seq {
		return nil, 0 // its slot has gone to a newer one
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
