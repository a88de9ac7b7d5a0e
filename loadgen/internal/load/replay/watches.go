package replay

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/stormglass/stormglass/loadgen/internal/apiclient/h2conn"
	"github.com/stormglass/stormglass/loadgen/internal/latency"
	"github.com/stormglass/stormglass/loadgen/internal/load"
	"github.com/stormglass/stormglass/loadgen/result"
)

// errHeld is the error with which the load ends a watch that has been open as long as in the recording.
var errHeld = errors.New("held to its end")

// watches opens the watches of the recording at their times and keeps each open as long as in the recording. The speed
// does not shorten this time, because the recorded client chose it. A watch whose duration is unknown stays open until
// the end of the load.
type watches struct {
	op      *operation
	pool    *h2conn.Pool
	timeout time.Duration

	mu     sync.Mutex
	open   map[*held]bool // watches in progress
	ended  bool
	counts result.ReplayWatches
	bins   bins
	opened *latency.Histogram
	last   sync.WaitGroup // streams that have not ended
}

// held is one open watch. It is also the handler of its stream.
type held struct {
	set      *watches
	arrival  Arrival
	length   time.Duration // 0 means until the end of the load
	stream   h2conn.Stream
	timer    *time.Timer // ends the watch if no response arrives in time, and later at the end of its length
	status   int
	up       bool          // whether the server answered with 200; guarded by set.mu
	answered time.Duration // time of the response, since the load's start
	events   int64
	bytes    int64
}

// run opens the watches at their times until ctx ends. Then it closes all watches and waits until they have ended.
func (w *watches) run(ctx context.Context) {
	defer w.end()
	for n, a := range w.op.watches {
		if !w.op.await(ctx, a.At) {
			return
		}
		w.start(ctx, int64(n), a)
	}
	<-ctx.Done()
}

// start opens a watch in a separate goroutine, which ends when the request has been sent or has failed.
func (w *watches) start(ctx context.Context, n int64, a Arrival) {
	e := &w.op.recording.Entries[a.Entry]
	act := &w.op.actions[e.Shape]
	h := &held{set: w, arrival: a, length: e.Took.D()}
	w.mu.Lock()
	w.bins.add(w.op.now())
	w.counts.Due++
	w.open[h] = true
	w.last.Add(1)
	w.mu.Unlock()
	w.op.ledger.sent(act.kind, e, a)
	path, queried := w.op.appendPath([]byte(w.op.templates.Prefix()), a, n)
	path = w.op.appendVersion(path, queried, act, nil)
	path = strconv.AppendInt(append(path, "&timeoutSeconds="...), watchTimeout(e.Took.D().Seconds()), 10)
	template := w.op.header(e, a, act).Load()
	go func() {
		opening, cancel := context.WithTimeoutCause(ctx, w.timeout, load.ErrTimeout)
		defer cancel()
		for {
			conn, err := w.pool.Acquire(opening)
			if err == nil {
				if err = conn.TryOpen(&h.stream, template, path, nil, h); err == nil {
					w.opening(h)
					return
				}
			}
			if !errors.Is(err, h2conn.ErrBusy) && !errors.Is(err, h2conn.ErrGoAway) || opening.Err() != nil {
				h.End(err)
				return
			}
		}
	}()
}

// opening starts the timeout of a watch after its request was sent. If the load has already ended, it ends the watch
// instead.
func (w *watches) opening(h *held) {
	w.mu.Lock()
	under := w.open[h] && !h.up
	if under {
		h.timer = time.AfterFunc(w.timeout, func() { h.stream.CancelWith(load.ErrTimeout) })
	}
	over := under && w.ended
	w.mu.Unlock()
	if over {
		h.stream.CancelWith(h2conn.ErrClosed)
	}
}

// Header receives the header of the response.
func (h *held) Header(header h2conn.Header) {
	h.status = header.Status
	if h.status != http.StatusOK {
		return
	}
	w := h.set
	now := w.op.now()
	w.opened.Record(now - h.arrival.At)
	w.mu.Lock()
	defer w.mu.Unlock()
	h.up, h.answered = true, now
	w.counts.Opened++
	w.counts.Open++
	w.counts.OpenMax = max(w.counts.OpenMax, w.counts.Open)
	if h.timer != nil {
		h.timer.Stop()
	}
	if h.length > 0 {
		h.timer = time.AfterFunc(h.arrival.At+h.length-now, func() { h.stream.CancelWith(errHeld) })
	}
}

// Data counts events. Each event is one line.
func (h *held) Data(p []byte) {
	h.bytes += int64(len(p))
	if h.status == http.StatusOK {
		h.events += int64(bytes.Count(p, []byte{'\n'}))
	}
}

// End receives the end of the stream.
func (h *held) End(err error) {
	w := h.set
	now := w.op.now()
	outcome := load.Outcome(h.status)
	if h.status != http.StatusOK && err != nil {
		outcome = load.OutcomeOf(err)
	}
	e := &w.op.recording.Entries[h.arrival.Entry]
	w.op.ledger.ended(w.op.actions[e.Shape].kind, e, h.arrival, outcome)
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.open[h] {
		return
	}
	delete(w.open, h)
	defer w.last.Done()
	if h.timer != nil {
		h.timer.Stop()
	}
	c := &w.counts
	c.Codes[outcome.String()]++
	c.Events += h.events
	c.Bytes += h.bytes
	if !h.up {
		return
	}
	c.Open--
	c.HeldSeconds += (now - h.answered).Seconds()
	if !errors.Is(err, errHeld) && !w.ended {
		c.EndedEarly++
	}
}

// end closes all watches and waits until they have ended.
func (w *watches) end() {
	w.mu.Lock()
	w.ended = true
	w.mu.Unlock()
	w.pool.Close()
	w.last.Wait()
}

func (w *watches) live() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return int(w.counts.Open)
}
