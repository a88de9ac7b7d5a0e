package stubapi

import (
	"net/url"
	"strconv"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// watch is one open watch.
type watch struct {
	stream   *stream
	server   *Server
	k        int64
	form     form
	selector selector
	script   eventScript // under the store's lock

	mu     sync.Mutex
	events int64
	queue  []due
	done   bool
}

// due is a piece that is sent later.
type due struct {
	piece
	bytes []byte
	at    time.Time
}

// watch begins a watch: it sends the missed events first, then new ones.
func (s *Server) watch(st *stream, at place, query url.Values) {
	f := formOf(st.accept, at.resource)
	sel, err := newSelector(at, query)
	if err != nil {
		st.respond(f, response{400, f.status(400, metav1.StatusReasonBadRequest, err.Error())})
		return
	}
	text := query.Get("resourceVersion")
	from, _ := strconv.ParseUint(text, 10, 64) // "" and "0" are any version
	s.store.mu.Lock()
	defer s.store.mu.Unlock()
	c := s.store.of(at.resource)
	initial := query.Get("sendInitialEvents") == "true"
	present := initial || from == 0
	events, ok := s.store.since(c, from)
	if !present && !ok {
		st.respond(f, response{410, f.status(410, metav1.StatusReasonExpired, "too old resource version")})
		return
	}
	if present {
		events = nil
		for _, o := range c.all() {
			events = append(events, &event{kind: added, object: o, rv: o.rv})
		}
		from = s.store.rv
	}
	w := &watch{stream: st, server: s, form: f, selector: sel}
	w.k = s.record.opened(from, st)
	w.script = eventScript{script: s.options.Script, watch: w.k}
	st.conn.head(st, 200, f.contentType(true), -1, 0)
	c.watches[w] = struct{}{}
	if !st.watching(func() {
		s.store.mu.Lock()
		delete(c.watches, w)
		s.store.mu.Unlock()
		w.mu.Lock()
		w.done = true
		w.mu.Unlock()
	}) {
		delete(c.watches, w) // given up already
		return
	}
	for _, e := range events {
		w.send(e)
	}
	if initial {
		w.send(s.store.bookmarkOf(at.resource, true))
	}
	if n, err := strconv.Atoi(query.Get("timeoutSeconds")); err == nil && n > 0 {
		w.server.after(time.Duration(n)*time.Second, func() { w.write(due{piece: piece{spoil: End}}) })
	}
}

// send sends an event, with the script's failures. The store's lock is held.
func (w *watch) send(e *event) {
	if e.kind != bookmark && !w.selector.matches(e.object) {
		return
	}
	var delay time.Duration
	if w.server.options.EventDelay != nil && e.kind != bookmark {
		delay = w.server.options.EventDelay(w.k, w.events)
		w.events++
	}
	for _, p := range w.script.next(e) {
		d := due{piece: p}
		switch {
		case p.event != nil:
			d.bytes = p.event.write(w.form)
		case p.spoil == Gone:
			d.bytes = w.form.event("ERROR", w.form.status(410, metav1.StatusReasonExpired, "too old resource version"))
		case p.spoil == Garble && w.form.protobuf:
			d.bytes = []byte("\x00\x00\x00\x08no event")
		case p.spoil == Garble:
			d.bytes = []byte("{\"type\":\"ADDED\",\"object\":[}\n")
		}
		if w.server.options.EventDelay == nil {
			w.write(d)
			continue
		}
		w.enqueue(d, delay)
	}
}

// enqueue puts a piece into the queue, due no earlier than those before it.
func (w *watch) enqueue(d due, delay time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	d.at = time.Now().Add(delay)
	if n := len(w.queue); n > 0 && d.at.Before(w.queue[n-1].at) {
		d.at = w.queue[n-1].at
	}
	w.queue = append(w.queue, d)
	time.AfterFunc(time.Until(d.at), w.flush)
}

// flush sends the events that are due. Its lock keeps the order.
func (w *watch) flush() {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := time.Now()
	for len(w.queue) > 0 && !w.queue[0].at.After(now) {
		if !w.done {
			w.write(w.queue[0])
		}
		w.queue = w.queue[1:]
	}
}

// write hands a piece to the connection and records it.
func (w *watch) write(d due) {
	c := w.stream.conn
	if d.event != nil {
		if c.body(w.stream, d.bytes, false) {
			w.server.record.sent(w.k, d.event.kind, d.event.rv)
		}
		return
	}
	switch d.spoil {
	case Garble:
		c.body(w.stream, d.bytes, false)
	case Abort:
		c.reset(w.stream)
	default:
		c.body(w.stream, d.bytes, true)
	}
}

// Spoil is a failure of one event on its way to one watch.
type Spoil uint8

// The ways an event is spoilt.
const (
	Keep   Spoil = iota
	Drop         // it is not sent
	Double       // it is sent twice
	Swap         // it is sent after the next one
	Gone         // the watch ends before it with ERROR 410
	End          // the watch ends before it, in order
	Abort        // the stream is reset before it
	Garble       // bytes that are no event are sent in its place
)

// Script returns the failure of event n (from 0) of watch k. Watches are numbered
// in the order of opening, from 0; a resumed watch has a new number. It is a pure
// function.
type Script func(k, n int64) Spoil

// Spoils makes a script out of a list.
func Spoils(list map[int64]map[int64]Spoil) Script {
	return func(k, n int64) Spoil { return list[k][n] }
}

// piece is one message sent to a watch, for an event or at its end.
type piece struct {
	event *event // nil: an end, or garbage
	spoil Spoil
}

// eventScript applies a script to the events of one watch. It has no clock and no
// I/O.
type eventScript struct {
	script Script
	watch  int64
	n      int64
	held   *event // swapped with the next
	ended  bool
}

// next returns the messages for an event.
func (t *eventScript) next(e *event) []piece {
	if t.ended {
		return nil
	}
	spoil := Keep
	if t.script != nil && e.kind != bookmark {
		spoil = t.script(t.watch, t.n)
		t.n++
	}
	var out []piece
	switch spoil {
	case Drop:
	case Double:
		out = append(out, piece{event: e}, piece{event: e})
	case Swap:
		if t.held == nil { // one at a time
			t.held = e
			return nil
		}
		out = append(out, piece{event: e})
	case Gone, End, Abort:
		t.ended = true
		return append(out, piece{spoil: spoil})
	case Garble:
		out = append(out, piece{spoil: Garble})
	default:
		out = append(out, piece{event: e})
	}
	if t.held != nil && len(out) > 0 {
		out = append(out, piece{event: t.held})
		t.held = nil
	}
	return out
}
