package node

import (
	"encoding/binary"
	"fmt"
	"net/http"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stormglass/stormglass/loadgen/internal/apiclient"
	"github.com/stormglass/stormglass/loadgen/internal/apiclient/h2conn"
	"github.com/stormglass/stormglass/loadgen/internal/apiclient/protobuf"
)

// watchStream is one attempt at a watch: the handler of its stream. Its
// fields are the opening goroutine's, then the read loop's.
type watchStream struct {
	w       *watcher
	stream  *h2conn.Stream // under w.mu
	held    bool           // counted as open; under w.mu
	version string
	opened  time.Time
	listing bool // the initial events of a WatchList are coming in
	header  h2conn.Header
	buf     []byte // part of a frame, or a refusal's body
	events  int
}

func (s *watchStream) open() error {
	w := s.w
	conn, err := w.link.get(w.life.ctx)
	if err != nil {
		w.life.ledger.request("watch", w.resource, outcome(err))
		return err
	}
	if s.version == "" && w.listFirst.Load() {
		if err := s.list(); err != nil {
			return err
		}
	}
	r, err := w.link.request(call{method: http.MethodGet, path: s.path(), urgent: true})
	if err != nil {
		return err
	}
	r.Accept = protobuf.WatchType
	if s.listing = s.version == ""; s.listing && w.sink != nil {
		w.sink.begin()
	}
	stream, err := conn.Open(r, s)
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

func (s *watchStream) path() string {
	w := s.w
	seconds := int(apiclient.WatchLength(w.timeout, w.life.float()).Seconds())
	p := w.path + "?watch=true&allowWatchBookmarks=true&timeoutSeconds=" + strconv.Itoa(seconds) +
		"&resourceVersion=" + s.version
	if s.version == "" {
		p += "&resourceVersionMatch=NotOlderThan&sendInitialEvents=true"
	}
	if w.selector != "" {
		p += "&" + w.selector
	}
	return p
}

// list is how a watch begins on a server without WatchList.
func (s *watchStream) list() error {
	w := s.w
	path := w.path + "?resourceVersion=0"
	if w.selector != "" {
		path += "&" + w.selector
	}
	body, err := w.link.do(w.life.ctx, call{verb: "list", resource: w.resource, method: http.MethodGet, path: path, urgent: true})
	if err != nil {
		return err
	}
	raw, err := protobuf.Unwrap(body)
	if err != nil {
		return fmt.Errorf("list %s: %w", w.resource, err)
	}
	if w.sink != nil {
		w.sink.begin()
	}
	meta, err := protobuf.List(raw, func(object []byte) error {
		if w.sink == nil {
			return nil
		}
		v, err := scan(object, w.layout)
		if err == nil {
			w.sink.event("ADDED", object, v)
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("list %s: %w", w.resource, err)
	}
	if w.sink != nil {
		w.sink.listed()
	}
	s.advance(meta.ResourceVersion)
	return nil
}

// advance notes the version that the watch has reached.
func (s *watchStream) advance(version string) {
	s.version = version
	s.w.mu.Lock()
	if s.w.current == s {
		s.w.version = version
	}
	s.w.mu.Unlock()
}

// Header is the answer to the watch request.
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

// Data takes frames of events apart: four bytes of length, big-endian, and
// that many bytes of a WatchEvent.
func (s *watchStream) Data(p []byte) {
	if s.header.Status != http.StatusOK {
		s.buf = append(s.buf, p[:min(len(p), maxErrorBody-len(s.buf))]...)
		return
	}
	if len(s.buf) > 0 {
		s.buf = append(s.buf, p...)
		p = s.buf
	}
	for len(p) >= 4 {
		n := int(binary.BigEndian.Uint32(p))
		if n > apiclient.MostEvent {
			s.abandon(fmt.Errorf("watch %s: an event of %d bytes", s.w.resource, n))
			return
		}
		if len(p) < 4+n {
			break
		}
		if err := s.event(p[4 : 4+n]); err != nil {
			s.abandon(err)
			return
		}
		p = p[4+n:]
	}
	if len(p) == 0 {
		s.buf = nil // a rare event in two parts should not cost memory for good
		return
	}
	s.buf = append(s.buf[:0], p...)
}

// event handles one WatchEvent.
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
	if err != nil {
		return fmt.Errorf("watch %s: %w", w.resource, err)
	}
	if kind != "BOOKMARK" && w.sink != nil {
		w.sink.event(kind, object, v)
	}
	if kind == "BOOKMARK" && v.initialEventsEnd && s.listing {
		s.listing = false
		if w.sink != nil {
			w.sink.listed()
		}
	}
	if !s.listing { // a listing cut short must begin anew
		s.advance(string(v.version))
	}
	return nil
}

// abandon ends a stream that cannot go on.
func (s *watchStream) abandon(err error) {
	s.w.mu.Lock()
	stream := s.stream
	s.w.mu.Unlock()
	if stream != nil {
		stream.Cancel()
	}
	s.finish(err)
}

// End is the end of the stream.
func (s *watchStream) End(err error) {
	if err == nil && s.header.Status != http.StatusOK {
		err = statusError(s.header, s.buf)
	}
	s.finish(err)
}

// finish decides, once per attempt, how the watch goes on.
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

// verdict is called with w.mu held.
func (s *watchStream) verdict(err error, held bool) (delay time.Duration, again bool) {
	w := s.w
	if w.life.over() {
		return 0, false // closed by us
	}
	ledger := w.life.ledger
	if held && (err != nil || w.life.clock.Since(s.opened) < w.timeout) {
		ledger.samples.Broke()
	}
	switch {
	case err == nil && (s.events > 0 || w.life.clock.Since(s.opened) >= apiclient.TooShort):
		// The server ends a watch after timeoutSeconds.
		w.tries = 0
		ledger.reconnects.Add(1)
		return 0, true
	case apierrors.IsResourceExpired(err) || apierrors.IsGone(err):
		w.version = ""
		ledger.relists.Add(1)
		ledger.samples.Relisted()
	case s.listing && (apierrors.IsInvalid(err) || apierrors.IsBadRequest(err)) && !w.listFirst.Load():
		w.listFirst.Store(true)
		return 0, true
	case w.optional && apierrors.IsNotFound(err):
		return 0, false
	case held:
		ledger.reconnects.Add(1)
	}
	if held && s.events > 0 {
		w.tries = 0
	}
	w.tries++
	if w.tries == 1 && apierrors.IsResourceExpired(err) {
		return 0, true
	}
	delay = apiclient.WatchBackoff(w.tries, w.life.float())
	if seconds, ok := apierrors.SuggestsClientDelay(err); ok {
		delay = max(delay, time.Duration(seconds)*time.Second)
	}
	return delay, true
}

// release gives back the count of an open watch. The caller holds w.mu.
func (s *watchStream) release() bool {
	held := s.held
	if held {
		s.held = false
		s.w.life.ledger.watchClosed()
	}
	return held
}
