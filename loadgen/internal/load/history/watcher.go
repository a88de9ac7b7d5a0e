package history

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/stormglass/stormglass/loadgen/internal/apiclient"
	"github.com/stormglass/stormglass/loadgen/internal/apiclient/h2conn"
	"github.com/stormglass/stormglass/loadgen/internal/apiclient/listwatch"
	"github.com/stormglass/stormglass/loadgen/internal/load/history/check"
)

// firstBackoff and longestBackoff limit the wait after a failed watch. They are shorter than in client-go, because a
// watcher must be connected at the end of the history.
const (
	firstBackoff   = 100 * time.Millisecond
	longestBackoff = 2 * time.Second
	// answerTimeout is the time limit for the response headers of a watch and for a complete list.
	answerTimeout = 30 * time.Second
)

// watcher keeps one watch of all registers open, on its own connection.
type watcher struct {
	load   *Load
	number int
	conn   connection // connection for lists
	draw   *rand.Rand

	mu        sync.Mutex
	start     uint64
	entries   []check.Entry
	newest    uint64    // newest version of events, bookmarks and lists
	last      uint64    // newest version of events alone
	up        time.Time // when the watch was established; zero if the watch is not open
	opened    int64
	relists   int64
	events    int64
	bookmarks int64
	full      bool
}

func newWatcher(l *Load, number int, start uint64) *watcher {
	return &watcher{
		load: l, number: number, conn: connection{to: l.to, sent: l.sent}, start: start, newest: start,
		draw: rand.New(rand.NewPCG(uint64(l.seed), uint64(number)<<32)),
	}
}

func (w *watcher) run(ctx context.Context) {
	defer w.conn.close()
	m := listwatch.Machine{Backoff: apiclient.Backoff{First: firstBackoff, Most: longestBackoff}, State: listwatch.FreshList}
	for ctx.Err() == nil {
		var end listwatch.End
		if m.Next == listwatch.Watch {
			end = w.watch(ctx)
		} else {
			end.Err = w.relist(ctx)
		}
		_, wait := m.Ended(end, 0)
		apiclient.Pause(ctx, wait)
	}
}

// watch opens a watch from the newest known version and waits until it ends. It returns how the watch ended.
func (w *watcher) watch(ctx context.Context) listwatch.End {
	dialing, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	conn, err := w.load.to.Connect(dialing, h2conn.Options{Ping: silence})
	if err != nil {
		return listwatch.End{Err: err}
	}
	defer func() {
		conn.Close()
		<-conn.Done()
	}()
	registers := w.load.registers
	timeout := listwatch.Length(listwatch.ShortestWatch, w.draw.Float64())
	path := listwatch.AppendQuery([]byte(registers.collection), listwatch.Watch, w.known(), timeout, registers.selector)
	r, err := newRequest(w.load.to, http.MethodGet, string(path), nil)
	if err != nil {
		return listwatch.End{Err: err}
	}
	s := &watchStream{
		watcher: w, conn: conn, frames: listwatch.Frames{Lines: true}, headed: make(chan struct{}), done: make(chan struct{}),
	}
	if _, err := conn.Open(r, s); err != nil {
		return listwatch.End{Err: err}
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
	return s.end
}

// known returns the newest known version, from which the watch resumes.
func (w *watcher) known() uint64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.newest
}

// relist lists the registers and records the list as reads. The watch then continues from the version of the list.
func (w *watcher) relist(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	version, err := w.load.list(ctx, &w.conn, w.load.config.Clients+w.number, false)
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

// add adds an entry to the watcher's log. The caller holds mu.
func (w *watcher) add(e check.Entry) {
	if w.full || w.load.events.Add(1) > MaxEvents {
		w.full = true
		return
	}
	w.entries = append(w.entries, e)
	w.newest = max(w.newest, e.Version)
}

// established reports whether the watch has been open for at least the duration `enough`, and no event was dropped
// because the history was full.
func (w *watcher) established(enough time.Duration) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return !w.full && !w.up.IsZero() && time.Since(w.up) >= enough
}

type watchStream struct {
	watcher *watcher
	conn    *h2conn.Conn
	frames  listwatch.Frames
	header  h2conn.Header
	headed  chan struct{} // closed when the server answers the watch with 200
	wrong   error         // reason for giving up the stream
	end     listwatch.End // how the watch ended; valid once done is closed
	broke   bool          // whether the watch was established and ended too early; valid once done is closed
	done    chan struct{}
}

// Header receives the header of the response.
func (s *watchStream) Header(h h2conn.Header) {
	if s.header = h; h.Status != http.StatusOK {
		return
	}
	close(s.headed)
	s.end.Up = true
	s.watcher.mu.Lock()
	defer s.watcher.mu.Unlock()
	s.watcher.opened++
	s.watcher.up = time.Now()
}

// Data receives events in JSON, one per line.
func (s *watchStream) Data(p []byte) {
	if !s.end.Up || s.wrong != nil {
		return
	}
	at := s.watcher.load.record.now()
	s.wrong = s.frames.Feed(p, func(event []byte) error {
		s.end.Events++
		return s.watcher.take(event, at)
	})
	if s.wrong != nil {
		s.conn.Close()
	}
}

// End receives the end of the stream.
func (s *watchStream) End(err error) {
	s.end.Err = cmp.Or(s.wrong, err)
	if !s.end.Up && err == nil {
		s.end.Err = &listwatch.Refusal{Status: s.header.Status, RetryAfter: s.header.RetryAfter}
	}
	s.watcher.mu.Lock()
	s.end.Lived = time.Since(s.watcher.up)
	// The watch ended too early if it failed, or if it ended before the server's timeout for watches.
	s.broke = s.end.Up && (s.end.Err != nil || s.end.Lived < listwatch.ShortestWatch)
	s.watcher.up = time.Time{}
	s.watcher.mu.Unlock()
	close(s.done)
}

func (w *watcher) take(line []byte, at time.Duration) error {
	var e struct {
		Type   string `json:"type"`
		Object struct {
			corev1.ConfigMap
			Code int `json:"code"`
		} `json:"object"`
	}
	if err := json.Unmarshal(line, &e); err != nil {
		return fmt.Errorf("%w: %w", listwatch.ErrMalformed, err)
	}
	if e.Type == "ERROR" {
		return &listwatch.Refusal{Status: e.Object.Code}
	}
	version, err := versionOf(&e.Object)
	if err != nil {
		return fmt.Errorf("%w: %w", listwatch.ErrMalformed, err)
	}
	entry := check.Entry{At: at, Version: version, Register: -1}
	w.mu.Lock()
	defer w.mu.Unlock()
	switch e.Type {
	case "BOOKMARK":
		entry.Kind = check.Bookmark
		w.bookmarks++
	case "ADDED", "MODIFIED", "DELETED":
		entry.Kind, entry.Register, entry.Value = check.Changed, w.load.registers.number(e.Object.Name), valueOf(&e.Object.ConfigMap)
		if e.Type == "DELETED" {
			entry.Kind = check.Deleted
		}
		w.events++
		w.last = max(w.last, version)
	default:
		return fmt.Errorf("%w: an event has the unknown type %q", listwatch.ErrMalformed, e.Type)
	}
	w.add(entry)
	return nil
}
