package node

import (
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stormglass/stormglass/loadgen/internal/apiclient/h2conn"
	"github.com/stormglass/stormglass/loadgen/internal/apiclient/listwatch"
	"github.com/stormglass/stormglass/loadgen/internal/apiclient/protobuf"
)

// sink receives the events of a watch, in order. begin marks the start of a list, event delivers a change or a listed
// object (as ADDED), and listed marks the end of the list. Objects that were not in the list are gone. The functions
// run on a connection's read loop and must not block.
type sink struct {
	begin  func()
	event  func(kind string, object []byte, v view)
	listed func()
}

// noSink returns a sink that ignores all events. It is for watches that need only the resourceVersions.
func noSink() sink { return sink{func() {}, func(string, []byte, view) {}, func() {}} }

// maxErrorBody is the maximum number of bytes that a watchStream keeps of an error response.
const maxErrorBody = 64 << 10

// watcher keeps one watch open and opens it again when it ends, by the rules of package listwatch. It has no goroutine
// while the watch is open.
type watcher struct {
	life     *life
	link     *link
	resource string // name of the resource in metrics
	path     string // path of the collection
	selector string // query parameters such as "&fieldSelector=...", or empty
	layout   layout // fields of an object that the sink needs
	sink     sink
	// optional ends the watcher if the server does not have the resource (404). refusable ends it if the server forbids
	// access (403). The watcher retries after other errors.
	optional, refusable bool
	// timeout is the smallest timeoutSeconds that the watcher requests; the largest is twice as long.
	timeout time.Duration
	// All watchers share listFirst. A watcher sets it to true when the server does not support WatchList.
	listFirst *atomic.Bool

	mu      sync.Mutex
	stopped bool
	current *watchStream
	version uint64 // resourceVersion from which to resume; 0 means to list first
	machine listwatch.Machine
}

func (w *watcher) start() { w.life.spawn(w.open) }

func (w *watcher) stop() {
	w.mu.Lock()
	w.stopped = true
	w.mu.Unlock()
	w.detach()
}

// relist ends the current watch and starts again with a list.
func (w *watcher) relist() {
	w.detach()
	w.mu.Lock()
	w.version, w.machine.Next = 0, w.machine.State
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
	if w.machine.Next == listwatch.WatchList && w.listFirst.Load() {
		w.machine.State, w.machine.Next = listwatch.List, listwatch.List
	}
	s.asked, s.version = w.machine.Next, w.version
	w.current = s
	w.mu.Unlock()
	if s.asked >= listwatch.List {
		s.finish(s.list())
	} else if err := s.open(); err != nil {
		s.finish(err)
	}
}

// watchStream is one attempt to watch, and the handler of its HTTP/2 stream. Its fields belong to the goroutine that
// opens the watch, and after that to the connection's read loop.
type watchStream struct {
	w       *watcher
	stream  *h2conn.Stream // the open stream; guarded by w.mu
	held    bool           // whether the watch is counted as open; guarded by w.mu
	asked   listwatch.Question
	version uint64
	opened  time.Time
	listing bool // whether the initial events of a WatchList are arriving
	header  h2conn.Header
	frames  listwatch.Frames
	refusal []byte // body of an error response
	events  int
}

func (s *watchStream) path() string {
	w := s.w
	timeout := listwatch.Length(w.timeout, w.life.float())
	return string(listwatch.AppendQuery([]byte(w.path), s.asked, s.version, timeout, w.selector))
}

func (s *watchStream) open() error {
	w := s.w
	path := s.path()
	if s.listing = s.asked == listwatch.WatchList; s.listing {
		w.sink.begin()
	}
	stream, err := w.link.watch(w.life.ctx, path, s)
	if err != nil {
		w.life.ledger.request("watch", w.resource, outcome(err))
		return err
	}
	w.mu.Lock()
	s.stream = stream
	wanted := w.current == s
	w.mu.Unlock()
	if !wanted {
		stream.Cancel()
	}
	return nil
}

// list lists the objects before a watch if the server does not support WatchList.
func (s *watchStream) list() error {
	w := s.w
	body, err := w.link.do(w.life.ctx, call{verb: "list", resource: w.resource, path: s.path(), urgent: true})
	if err != nil {
		return err
	}
	w.sink.begin()
	meta, err := protobuf.List(body, func(object []byte) error {
		v, err := scan(object, w.layout)
		if err == nil {
			w.sink.event("ADDED", object, v)
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("list %s: %w", w.resource, err)
	}
	w.sink.listed()
	s.advance(number(meta.ResourceVersion))
	return nil
}

// advance records the resourceVersion that the watch has reached.
func (s *watchStream) advance(version uint64) {
	s.version = version
	s.w.mu.Lock()
	defer s.w.mu.Unlock()
	if s.w.current == s && version > 0 {
		s.w.version, s.w.machine.Next = version, listwatch.Watch
	}
}

// Header receives the header of the response to the watch request.
func (s *watchStream) Header(h h2conn.Header) {
	s.header = h
	w := s.w
	w.life.ledger.request("watch", w.resource, strconv.Itoa(h.Status))
	if h.Status != http.StatusOK {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.current == s {
		s.held = true
		w.life.ledger.watchOpened()
	}
}

// Data receives a part of the event stream, or of an error response.
func (s *watchStream) Data(p []byte) {
	if s.header.Status != http.StatusOK {
		s.refusal = append(s.refusal, p[:min(len(p), maxErrorBody-len(s.refusal))]...)
		return
	}
	if err := s.frames.Feed(p, s.event); err != nil {
		s.abandon(err)
	}
}

func (s *watchStream) event(frame []byte) error {
	w := s.w
	kind, object, err := protobuf.Event(frame)
	if err != nil {
		return fmt.Errorf("watch %s: %w", w.resource, err)
	}
	if kind == "ERROR" {
		var status metav1.Status
		if err := status.Unmarshal(object); err != nil {
			return fmt.Errorf("watch %s: %w", w.resource, err)
		}
		return &apierrors.StatusError{ErrStatus: status}
	}
	s.events++
	v, err := scan(object, w.layout)
	switch {
	case err != nil:
		return fmt.Errorf("watch %s: %w", w.resource, err)
	case kind != "BOOKMARK":
		w.sink.event(kind, object, v)
	case v.initialEventsEnd && s.listing:
		s.listing = false
		w.sink.listed()
	}
	if !s.listing { // during the initial list there is no version to resume from
		s.advance(number(string(v.ResourceVersion)))
	}
	return nil
}

// abandon ends a stream that cannot continue.
func (s *watchStream) abandon(err error) {
	s.w.mu.Lock()
	stream := s.stream
	s.w.mu.Unlock()
	if stream != nil {
		stream.Cancel()
	}
	s.finish(err)
}

// End receives the end of the stream.
func (s *watchStream) End(err error) {
	if err == nil && s.header.Status != http.StatusOK {
		err = statusError(s.header, s.refusal)
	}
	s.finish(err)
}

// finish ends an attempt and schedules the next one, if any. Only the first call per attempt has an effect.
func (s *watchStream) finish(err error) {
	w := s.w
	w.mu.Lock()
	if w.current != s {
		w.mu.Unlock()
		return
	}
	w.current = nil
	held := s.release()
	delay, again := s.verdict(err, held)
	w.stopped = w.stopped || !again
	w.mu.Unlock()
	if again && !w.life.over() {
		w.life.after(delay, w.open)
	}
}

// verdict counts the outcome of an attempt. It returns whether to try again, and after which wait. held says whether
// the watch was open. The caller holds w.mu.
func (s *watchStream) verdict(err error, held bool) (delay time.Duration, again bool) {
	w := s.w
	if w.life.over() || w.optional && apierrors.IsNotFound(err) || w.refusable && apierrors.IsForbidden(err) {
		return 0, false
	}
	end := listwatch.End{Up: held, Events: s.events, Lived: w.life.clock.Since(s.opened), Err: err}
	ledger := w.life.ledger
	if held && (err != nil || end.Lived < w.timeout) {
		ledger.samples.Broke()
	}
	result, delay := w.machine.Ended(end, w.life.float())
	switch {
	case result == listwatch.Expired:
		w.version = 0
		ledger.relists.Add(1)
		ledger.samples.Relisted()
	case result == listwatch.NoWatchList:
		w.listFirst.Store(true)
	case held:
		ledger.reconnects.Add(1)
	}
	return delay, true
}

// release removes the watch from the count of open watches, and reports whether it was open. The caller holds w.mu.
func (s *watchStream) release() bool {
	held := s.held
	if held {
		s.held = false
		s.w.life.ledger.watchClosed()
	}
	return held
}
