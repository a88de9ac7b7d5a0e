package node

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/stormglass/stormglass/loadgen/internal/apiclient/h2conn"
)

// sink takes a watch's objects, in order. Calls must not block: they are made
// on a connection's read loop.
type sink interface {
	// begin opens a listing, event brings one change or one listed object
	// (ADDED), listed ends the listing: what it did not bring is gone.
	begin()
	event(kind string, object []byte, v view)
	listed()
}

const (
	// maxErrorBody bounds what is kept of a refusal.
	maxErrorBody = 64 << 10
)

// watcher keeps one watch alive, as a client-go reflector does: a WatchList
// (or, where the server has none, a list from its cache and a watch), then
// events and bookmarks; resumed by resourceVersion when it ends, begun anew
// when that version has expired. It has no goroutine while the watch is open.
type watcher struct {
	life     *life
	link     *link
	resource string // as metrics name it
	path     string // of the collection
	selector string // as "fieldSelector=...", or empty
	layout   layout // what the sink wants to see of an object
	sink     sink   // nil: only resourceVersions are read
	// optional resources may be missing on an older server.
	optional bool
	// timeout is the least that is asked as timeoutSeconds; the most is twice
	// that.
	timeout time.Duration
	// listFirst is set for all watchers once a server has no WatchList.
	listFirst *atomic.Bool

	mu      sync.Mutex
	stopped bool
	current *watchStream
	version string // resume from here; empty: begin with a list
	tries   int    // failures in a row
}

// start opens the watch in the background.
func (w *watcher) start() { w.life.spawn(w.open) }

// stop ends the watch for good.
func (w *watcher) stop() {
	w.mu.Lock()
	w.stopped = true
	w.mu.Unlock()
	w.detach()
}

// relist begins anew with a list.
func (w *watcher) relist() {
	w.detach()
	w.mu.Lock()
	w.version = ""
	w.mu.Unlock()
	w.start()
}

func (w *watcher) detach() {
	w.mu.Lock()
	s := w.current
	w.current = nil
	var stream *h2conn.Stream
	if s != nil {
		stream = s.stream
		s.release()
	}
	w.mu.Unlock()
	if stream != nil {
		stream.Cancel()
	}
}

func (w *watcher) open() {
	s := &watchStream{w: w, opened: w.life.clock.Now()}
	w.mu.Lock()
	if w.stopped || w.current != nil {
		w.mu.Unlock()
		return
	}
	w.current, s.version = s, w.version
	w.mu.Unlock()
	if err := s.open(); err != nil {
		s.finish(err)
	}
}
