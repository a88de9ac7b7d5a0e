package traffic

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"time"
)

// How client-go's reflectors behave (client-go/tools/cache/reflector.go): a
// watch is asked to end after 5 to 10 minutes, and a failure is followed by a
// wait that grows from 0.8 s to 30 s, doubled at random.
const (
	shortestWatch  = 5 * time.Minute
	firstBackoff   = 800 * time.Millisecond
	longestBackoff = 30 * time.Second
	// veryShort is a watch that ended at once with nothing to say: client-go
	// takes it for a failure.
	veryShort = time.Second
)

// readBuffer is what is read of a stream at once. An event may be of any size.
const readBuffer = 2 << 10

// watcher is one watch, through all its reconnections.
type watcher struct {
	set      *Watches
	id       int
	intended time.Time
	random   *rand.Rand
	scan     scanner
	rv       uint64 // newest seen: where the watch resumes
	joined   bool
	listed   bool // a list was needed since the last stream
	// Of the stream being read:
	now    time.Time // arrival of the piece being read
	events int
	failed *watchError // an ERROR event
}

// watchError is why a watch could not be opened, or had to end.
type watchError struct{ code int }

func (e *watchError) Error() string {
	return fmt.Sprintf("the API server ends the watch with code %d", e.code)
}

func newWatcher(set *Watches, id int, intended time.Time) *watcher {
	return &watcher{
		set: set, id: id, intended: intended,
		random: rand.New(rand.NewPCG(uint64(set.target.Seed), uint64(id))),
	}
}

// run keeps the watch open until ctx ends.
func (v *watcher) run(ctx context.Context) {
	backoff := firstBackoff
	for ctx.Err() == nil {
		begun := time.Now()
		err := v.watch(ctx)
		if ctx.Err() != nil {
			return
		}
		var refusal *watchError
		errors.As(err, &refusal)
		switch {
		case refusal != nil && refusal.code == http.StatusGone:
			err = v.relist(ctx)
		case err == nil && v.events == 0 && time.Since(begun) < veryShort:
			err = errors.New("very short watch")
		}
		if err == nil {
			backoff = firstBackoff
			continue
		}
		v.set.phases.Now().failed.Add(1)
		if !pause(ctx, backoff+time.Duration(v.random.Float64()*float64(backoff))) {
			return
		}
		backoff = min(2*backoff, longestBackoff)
	}
}

// relist does what a reflector must after a 410: it asks for the state and
// goes on from there. What happened between is not told any more.
func (v *watcher) relist(ctx context.Context) error {
	rv, err := v.set.list(ctx)
	if err != nil {
		return err
	}
	v.set.phases.Now().relisted.Add(1)
	v.set.metrics.relists.Inc()
	v.set.see(rv)
	v.rv = max(v.rv, rv)
	v.listed = true
	return nil
}

// watch is one request, from its opening to the end of its stream. The error
// is nil if the stream was established and then ended, however it ended: a
// lost connection is resumed at once, as client-go does.
func (v *watcher) watch(ctx context.Context) error {
	if !v.joined {
		v.rv = max(v.rv, v.set.newest.Load())
	}
	v.events, v.failed = 0, nil
	v.scan = newEventScanner(v)
	timeout := shortestWatch + time.Duration(v.random.Float64()*float64(shortestWatch))
	c := v.set.client
	resp, err := c.RoundTrip(c.request(http.MethodGet, v.set.watchURL(v.rv, timeout), c.watching, nil).WithContext(ctx))
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return &watchError{resp.StatusCode}
	}
	v.established()
	defer func() {
		v.set.open.Add(-1)
		v.set.metrics.open.Dec()
	}()
	buffer := make([]byte, readBuffer)
	for {
		n, err := resp.Body.Read(buffer)
		if n > 0 {
			v.now = time.Now()
			if err := v.scan.feed(buffer[:n]); err != nil {
				return fmt.Errorf("watch stream: %w", err)
			}
			if v.failed != nil {
				return v.failed
			}
		}
		if err != nil {
			return nil
		}
	}
}

// established joins the watch to those that owe deliveries, the first time.
func (v *watcher) established() {
	w, stats := v.set, v.set.phases.Now()
	w.open.Add(1)
	w.metrics.open.Inc()
	switch {
	case !v.joined:
		v.joined = true
		stats.openLatency.Record(time.Since(v.intended))
		w.roster.join(v.id, v.rv)
		if w.joined.Add(1) == int64(w.load.Count) {
			close(w.allOpen)
		}
	case !v.listed:
		stats.reconnects.Add(1)
		w.metrics.reconnects.Inc()
	}
	v.listed = false
}

// take is told each event of the stream.
func (v *watcher) take(e *event) {
	w, stats := v.set, v.set.phases.Now()
	v.events++
	w.events.Add(1)
	stats.events.Add(1)
	w.metrics.events.Inc()
	switch e.kind {
	case errorEvent:
		v.failed = &watchError{e.code}
		return
	case bookmark:
		stats.bookmarks.Add(1)
	case added, modified:
		v.deliver(e)
	}
	v.rv = max(v.rv, e.rv)
}

func (v *watcher) deliver(e *event) {
	id, seq, ok := parseStamp(e.stamp)
	if !ok {
		return
	}
	w := v.set
	l := w.ledger(id)
	if l == nil {
		return
	}
	d := l.deliver(v.id, seq, e.rv, v.now, e.rv < v.rv)
	switch {
	case d.first:
		w.arrived(1)
		w.liveWindow.Record(d.after)
		w.metrics.delivery.Observe(d.after.Seconds())
	case d.duplicated:
		w.metrics.duplicated.Inc()
	}
	if d.reordered {
		w.metrics.reordered.Inc()
	}
}

// arrived counts first deliveries of acknowledged writes.
func (w *Watches) arrived(n int64) {
	w.delivered.Add(n)
	w.metrics.delivered.Add(float64(n))
}
