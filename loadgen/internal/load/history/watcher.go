package history

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"

	"github.com/stormglass/stormglass/loadgen/internal/apiclient"
	"github.com/stormglass/stormglass/loadgen/internal/apiclient/h2conn"
	"github.com/stormglass/stormglass/loadgen/internal/load/history/check"
)

// The waits after a watch that failed are shorter than client-go's: a watcher has to
// be back when the history ends.
const (
	firstBackoff   = 100 * time.Millisecond
	longestBackoff = 2 * time.Second
	// answerTimeout is for the headers of a watch, and for a list.
	answerTimeout = 30 * time.Second
	// longestEvent bounds what is kept of an event that does not end.
	longestEvent = 1 << 20
)

// errGone: the version is too old to watch from.
var errGone = errors.New("too old resource version")

// watcher holds one watch of all registers, on a connection of its own.
type watcher struct {
	load   *Load
	number int
	line   line // for lists
	draw   *rand.Rand

	mu        sync.Mutex
	start     uint64
	entries   []check.Entry
	newest    uint64    // known: events, bookmarks, lists
	last      uint64    // of the events
	up        time.Time // since when the watch is established; zero: it is not
	opened    int64
	relists   int64
	events    int64
	bookmarks int64
	full      bool
}

func newWatcher(l *Load, number int, start uint64) *watcher {
	return &watcher{
		load: l, number: number, line: line{door: l.door}, start: start, newest: start,
		draw: rand.New(rand.NewPCG(uint64(l.seed), uint64(number)<<32)),
	}
}

// run watches until ctx ends.
func (w *watcher) run(ctx context.Context) {
	defer w.line.close()
	retry := apiclient.Retry{Backoff: apiclient.Backoff{First: firstBackoff, Most: longestBackoff}}
	for ctx.Err() == nil {
		began := time.Now()
		err := w.watch(ctx)
		if errors.Is(err, errGone) {
			err = w.relist(ctx)
		}
		if err == nil && time.Since(began) >= firstBackoff {
			retry.Reset()
			continue
		}
		retry.Pause(ctx)
	}
}

// watch asks for a watch from the newest version known, and returns when it
// ended: nil if it had been established.
func (w *watcher) watch(ctx context.Context) error {
	dialing, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	conn, err := w.load.door.dial(dialing, silence)
	if err != nil {
		return err
	}
	defer func() {
		conn.Close()
		<-conn.Done()
	}()
	path := fmt.Sprintf("%s&watch=1&allowWatchBookmarks=true&resourceVersion=%d&timeoutSeconds=%d",
		w.load.registers.selected, w.known(), int(apiclient.WatchLength(apiclient.ShortestWatch, w.draw.Float64()).Seconds()))
	r, err := w.load.door.request(http.MethodGet, path, nil)
	if err != nil {
		return err
	}
	s := &watchStream{watcher: w, conn: conn, headed: make(chan struct{}), done: make(chan struct{})}
	if _, err := conn.Open(r, s); err != nil {
		return err
	}
	select {
	case <-s.headed:
	case <-s.done:
	case <-dialing.Done():
		conn.Close()
	}
	select {
	case <-s.done:
	case <-ctx.Done():
		conn.Close()
		<-s.done
	}
	if s.broke && ctx.Err() == nil {
		w.load.streams.Broke()
	}
	return s.err
}

// known is the version to watch on from.
func (w *watcher) known() uint64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.newest
}

// relist lists the registers as a client does that reads them, and watches on
// from there.
func (w *watcher) relist(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	version, err := w.load.list(ctx, &w.line, w.load.config.Clients+w.number, false)
	if err != nil {
		return err
	}
	w.load.streams.Relisted()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.relists++
	w.add(check.Entry{Kind: check.Listed, At: w.load.record.now(), Register: -1, Version: version})
	return nil
}

// add keeps an entry. The caller holds mu.
func (w *watcher) add(e check.Entry) {
	if w.full || w.load.events.Add(1) > MaxEvents {
		w.full = true
		return
	}
	w.entries = append(w.entries, e)
	w.newest = max(w.newest, e.Version)
}

// established reports whether the watch has been so for at least that long, and
// everything that came was kept.
func (w *watcher) established(enough time.Duration) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return !w.full && !w.up.IsZero() && time.Since(w.up) >= enough
}

// watchStream reads one watch.
type watchStream struct {
	watcher *watcher
	conn    *h2conn.Conn
	status  int
	headed  chan struct{} // closed with the headers of a watch
	rest    []byte        // an event's beginning
	wrong   error         // why the stream was given up
	err     error         // once done
	broke   bool          // it was established and ended out of turn; once done
	done    chan struct{}
}

// Header is the beginning of the answer.
func (s *watchStream) Header(h h2conn.Header) {
	if s.status = h.Status; s.status != http.StatusOK {
		return
	}
	close(s.headed)
	s.watcher.mu.Lock()
	defer s.watcher.mu.Unlock()
	s.watcher.opened++
	s.watcher.up = time.Now()
}

// Data brings events: JSON, one a line.
func (s *watchStream) Data(p []byte) {
	if s.status != http.StatusOK || s.wrong != nil {
		return
	}
	at := s.watcher.load.record.now()
	for s.wrong == nil {
		line, rest, whole := bytes.Cut(p, []byte{'\n'})
		if !whole {
			if s.rest = append(s.rest, p...); len(s.rest) > longestEvent {
				s.wrong = fmt.Errorf("an event of more than %d bytes", longestEvent)
			}
			break
		}
		if len(s.rest) > 0 {
			line = append(s.rest, line...)
			s.rest = s.rest[:0]
		}
		s.wrong = s.watcher.take(line, at)
		p = rest
	}
	if s.wrong != nil {
		s.conn.Close()
	}
}

// End is the end of the stream.
func (s *watchStream) End(err error) {
	switch {
	case s.wrong != nil:
		s.err = s.wrong
	case s.status == http.StatusGone:
		s.err = errGone
	case s.status != http.StatusOK && err == nil:
		s.err = fmt.Errorf("the API server answers %d", s.status)
	case s.status != http.StatusOK:
		s.err = err
	}
	s.watcher.mu.Lock()
	// The server ends a watch in order, and not before it asked for that.
	s.broke = s.status == http.StatusOK && (err != nil || s.wrong != nil || time.Since(s.watcher.up) < apiclient.ShortestWatch)
	s.watcher.up = time.Time{}
	s.watcher.mu.Unlock()
	close(s.done)
}

// take reads one event.
func (w *watcher) take(line []byte, at time.Duration) error {
	var e struct {
		Type   string `json:"type"`
		Object struct {
			object
			Code int `json:"code"`
		} `json:"object"`
	}
	if err := json.Unmarshal(line, &e); err != nil {
		return fmt.Errorf("an event that cannot be read: %w", err)
	}
	if e.Type == "ERROR" {
		if e.Object.Code == http.StatusGone {
			return errGone
		}
		return fmt.Errorf("the watch ends with code %d", e.Object.Code)
	}
	version, err := e.Object.version()
	if err != nil {
		return err
	}
	entry := check.Entry{At: at, Version: version, Register: -1}
	w.mu.Lock()
	defer w.mu.Unlock()
	switch e.Type {
	case "BOOKMARK":
		entry.Kind = check.Bookmark
		w.bookmarks++
	case "ADDED", "MODIFIED", "DELETED":
		entry.Kind, entry.Register, entry.Value = check.Changed, w.load.registers.number(e.Object.Metadata.Name), e.Object.value()
		if e.Type == "DELETED" {
			entry.Kind = check.Deleted
		}
		w.events++
		w.last = max(w.last, version)
	default:
		return fmt.Errorf("an event of type %q", e.Type)
	}
	w.add(entry)
	return nil
}
