package watch

import (
	"context"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stormglass/stormglass/loadgen/internal/apiclient/h2conn"
	"github.com/stormglass/stormglass/loadgen/internal/apiclient/listwatch"
)

// watcher is one watch, including all its reconnections. It is the handler of its streams and has no goroutine. The
// opener and the read loop never use its fields at the same time: the queue and the connection synchronize them.
type watcher struct {
	set        *Watches
	id         int
	slow       bool
	connection *connection
	// scan is the scanner of the current attempt. watching is the scanner for watch events.
	scan, watching scanner

	rv  uint64 // newest version seen, from which the watch resumes
	key uint64 // hash of the object with that version
	// intended is the intended start of the watch, from which its opening latency is measured.
	intended time.Duration

	joined bool // whether the watch is recorded in the roster, so that it must deliver writes
	timed  bool // whether the opening latency has been recorded

	machine   listwatch.Machine
	asked     listwatch.Question
	relisting bool // whether the state must be read again because of a 410
	up        bool // whether the watch is established, and counted as open
	listing   bool // whether the initial events of a WatchList are arriving
	stream    *h2conn.Stream
	began     time.Duration
	events    int
	// failed is the reason why the watch gave up the stream, or nil.
	failed error
	// refusal is a response with a status other than 200, or nil. refused is the beginning of its body.
	refusal *listwatch.Refusal
	refused []byte

	// opening is held while an attempt is being made.
	opening sync.Mutex
	// current is the open stream. deadline is the time by which the stream must get a response or end; 0 means none. timer
	// runs during a wait before the next attempt. Other goroutines of Watches also use these fields.
	current  atomic.Pointer[h2conn.Stream]
	deadline atomic.Int64
	timer    atomic.Pointer[time.Timer]
}

func (v *watcher) attempt(ctx context.Context, o *opener) {
	v.opening.Lock()
	defer v.opening.Unlock()
	w := v.set
	v.asked, v.failed, v.up, v.listing, v.events = v.machine.Next, nil, false, false, 0
	v.refusal, v.refused = nil, nil
	if !v.joined && v.asked == listwatch.Watch {
		v.rv = max(v.rv, w.newest.Load())
	}
	v.began = w.now()
	timeout := listwatch.Length(listwatch.ShortestWatch, w.random())
	template := w.templates.watch
	if v.asked >= listwatch.List {
		v.scan, template = w.requests.scanner(v, levelObject), w.templates.list
	} else {
		if v.watching == nil {
			v.watching = w.requests.scanner(v, levelEvent)
		}
		v.scan = v.watching
		v.scan.reset()
	}
	o.path = w.requests.appendPath(o.path[:0], v.asked, v.rv, timeout)
	s := &h2conn.Stream{}
	v.stream = s
	// Set the deadline before the stream is opened, because the stream may end immediately.
	v.deadline.Store(int64(v.began + h2conn.DialTimeout + answerTimeout))
	if err := o.open(ctx, v, s, template.Load()); err != nil {
		v.End(err)
		return
	}
	v.current.Store(s)
}

// Header receives the header of the response.
func (v *watcher) Header(h h2conn.Header) {
	if h.Status != http.StatusOK {
		v.refusal = &listwatch.Refusal{Status: h.Status, RetryAfter: h.RetryAfter}
		return
	}
	if v.slow {
		v.stream.HoldWindow()
	}
	if v.asked < listwatch.List {
		v.established()
	}
}

func (v *watcher) established() {
	w, stats := v.set, v.set.phases.Now()
	v.up = true
	w.open.Add(1)
	v.deadline.Store(int64(w.now() + 2*listwatch.ShortestWatch + endGrace))
	switch {
	case !v.timed:
		v.timed = true
		stats.openLatency.Record(w.now() - v.intended)
	case !v.relisting:
		stats.reconnects.Add(1)
		w.all.reconnects.Add(1)
	}
	if v.asked == listwatch.WatchList {
		v.listing = true
		return
	}
	v.relisting = false // the relist has already been counted
	if !v.joined {
		v.join()
	}
}

// Data receives the next bytes of the stream.
func (v *watcher) Data(p []byte) {
	if v.failed != nil {
		return
	}
	if v.refusal != nil { // keep only the beginning of the body, which may never end
		v.refused = append(v.refused, p[:min(len(p), keptRefusal-len(v.refused))]...)
		if len(v.refused) == keptRefusal {
			v.giveUp(v.refusal)
		}
		return
	}
	l := v.connection
	l.mu.Lock()
	if v.up {
		l.tally.bytes += int64(len(p))
	}
	err := v.scan.feed(p)
	l.mu.Unlock()
	if err != nil {
		v.giveUp(err)
	}
}

// giveUp cancels the stream because of err. The connection calls End after the current callback has returned.
func (v *watcher) giveUp(err error) {
	v.failed = err
	v.stream.CancelWith(err)
}

// take handles an event of the stream. The caller holds the connection's mu.
func (v *watcher) take(e *event) error {
	if v.asked >= listwatch.List {
		v.rv = max(v.rv, e.rv)
		return nil
	}
	l := v.connection
	l.tally.events++
	switch {
	case e.kind == errorEvent:
		return &listwatch.Refusal{Status: e.code}
	case e.kind == unknownEvent:
		return malformed("an event has an unknown type")
	case e.rv == 0:
		return malformed("an object has no resourceVersion")
	}
	v.events++
	switch {
	case e.kind == bookmark:
		l.tally.bookmarks++
		if v.listing {
			if e.ends {
				v.listed(e.rv)
			}
			return nil
		}
		if e.rv > v.rv {
			v.rv, v.key = e.rv, 0
		}
		return nil
	case v.listing:
		return nil // part of the initial state, not a change
	}
	key := e.key()
	if e.kind == deleted || len(e.stamp) == 0 || !v.deliver(e) {
		v.foreign(e, key)
	}
	if e.rv >= v.rv {
		v.rv, v.key = e.rv, key
	}
	return nil
}

// deliver records an event with a stamp in the ledger to which the stamp belongs. It returns false if the event is
// not the delivery of a measured write.
func (v *watcher) deliver(e *event) bool {
	w := v.set
	id, seq, ok := parseStamp(e.stamp)
	if !ok {
		return false
	}
	account := w.ledger(id)
	if account == nil {
		return false
	}
	d := account.deliver(seq, receipt{watch: v.id, slow: v.slow, rv: e.rv, at: v.connection.arrived, late: v.connection.late, older: e.rv < v.rv})
	switch {
	case d.foreign:
		return false
	case d.first:
		v.connection.delivered(d, v.slow)
	case d.duplicated:
		w.all.duplicated.Add(1)
	}
	if d.reordered {
		w.all.reordered.Add(1)
	}
	return true
}

// foreign checks the order of events that are not deliveries of measured writes, as described in the package comment.
func (v *watcher) foreign(e *event, key uint64) {
	switch {
	case e.rv < v.rv:
		v.set.phases.Now().rare.reordered.Add(1)
		v.set.all.reordered.Add(1)
	case e.rv == v.rv && key == v.key:
		v.set.phases.Now().rare.duplicated.Add(1)
		v.set.all.duplicated.Add(1)
	}
}

// listed handles the end of the initial events of a WatchList. All later events are changes.
func (v *watcher) listed(rv uint64) {
	v.listing, v.machine.Next = false, listwatch.Watch
	v.rv, v.key = max(v.rv, rv), 0
	v.countRelist()
	v.relisting = false
	if !v.joined {
		v.join()
	}
}

func (v *watcher) countRelist() {
	if v.relisting {
		v.set.phases.Now().relists.Add(1)
		v.set.all.relists.Add(1)
		v.set.samples.Relisted()
	}
}

// join records that the watch must deliver all writes after its current version.
func (v *watcher) join() {
	w := v.set
	v.joined = true
	w.roster.join(v.id, v.rv)
	if w.established.Add(1) == int64(w.load.Count) {
		close(w.allOpen)
	}
}
