package watch

import (
	"bytes"
	"strconv"
	"time"
)

// receipt describes an event that a watch received and that has a stamp (see Changes).
type receipt struct {
	watch int
	slow  bool // whether the watch is slow on purpose, so that its latencies are not counted
	rv    uint64
	at    time.Duration
	older bool // whether the watch has already received a newer version
	// late is the maximum time by which the generator itself delayed the event.
	late time.Duration
}

// delivery is the result of looking up the write to which a receipt belongs.
type delivery struct {
	// foreign means that the event is not the delivery of an acknowledged write: the write was not acknowledged, or
	// another client changed the object and kept the stamp.
	foreign bool
	// first means that this is the watch's first delivery of an acknowledged write. `after` is the latency of the
	// delivery. The caller must record it in stats.
	first bool
	after time.Duration
	// ackLate is the maximum time by which the generator itself delayed the acknowledgement. `after` includes it.
	ackLate time.Duration
	stats   *deliveries
	// duplicated and reordered have the meaning of the fields in result.Watches. deliver has already counted them.
	duplicated, reordered bool
}

func (l *ledger) deliver(seq int64, a receipt) delivery {
	w := l.find(seq)
	if w == nil || seq > w.seq {
		return delivery{foreign: true}
	}
	if seq < w.seq {
		w.stats.late.Add(1)
		return delivery{}
	}
	state := w.state.Load()
	if state == inFlight {
		w.mu.Lock()
		if state = w.state.Load(); state == inFlight {
			defer w.mu.Unlock()
			return w.deliverEarly(a, l.present != nil)
		}
		w.mu.Unlock()
	}
	switch {
	case state == givenUp:
		w.stats.late.Add(1)
		return delivery{}
	case state == unknown, w.rv != a.rv:
		return delivery{foreign: true}
	case !w.mark(a.watch):
		return w.duplicate()
	}
	after := max(a.at-time.Duration(state), 0) + w.uncertain
	if !a.slow {
		w.stats.slow(a.watch, after)
	}
	return delivery{first: true, after: after, ackLate: w.ackLate, stats: w.stats, reordered: w.reorder(a)}
}

// deliverEarly records a delivery that arrived before the acknowledgement of the write. If `others` is true, the write
// is another worker's, and the delivery arrived before that worker's notice (load.Ack). The caller holds mu.
func (w *write) deliverEarly(a receipt, others bool) delivery {
	if w.rv != 0 && w.rv != a.rv {
		return delivery{foreign: true}
	}
	if !w.mark(a.watch) {
		return w.duplicate()
	}
	w.rv = a.rv
	switch {
	case others:
		w.pending = append(w.pending, pending{a.watch, a.slow, a.at, a.late})
	case a.slow:
		w.earlySlow++
	default:
		w.early++
		w.stats.slow(a.watch, 0)
	}
	return delivery{reordered: w.reorder(a)}
}

// mark records that a watch has delivered the write. It returns false if the watch had delivered it before.
func (w *write) mark(watch int) bool {
	bit := uint64(1) << (watch % 64)
	return w.seen[watch/64].Or(bit)&bit == 0
}

func (w *write) duplicate() delivery {
	if w.state.Load() == givenUp { // the ledger gave up the write after the caller's check
		w.stats.late.Add(1)
		return delivery{}
	}
	w.stats.duplicated.Add(1)
	return delivery{duplicated: true}
}

func (w *write) reorder(a receipt) bool {
	if a.older {
		w.stats.reordered.Add(1)
	}
	return a.older
}

// stamp appends the stamp of write seq to b.
func (l *ledger) stamp(b []byte, seq int64) []byte {
	b = append(append(b, l.id...), ':')
	return strconv.AppendInt(b, seq, 10)
}

// parseStamp parses a stamp "id:seq". ok is false if the text is not a stamp.
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
