package stubapi

import (
	"net/url"
	"strconv"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

type watch struct {
	stream   *stream
	server   *Server
	k        int64
	form     form
	selector selector
	script   eventScript // guarded by the store's lock

	mu     sync.Mutex
	events int64
	queue  []due
	done   bool
}

// due is a piece (a message to a watch) and the time at which to send it.
type due struct {
	piece
	bytes []byte
	at    time.Time
}

// watch starts a watch. It first sends the events since the requested version or, if the client accepts any version,
// the current objects. Then it sends new events.
func (s *Server) watch(st *stream, at place, query url.Values) {
	f := formOf(st.accept, at.resource)
	sel, err := newSelector(at, query)
	if err != nil {
		st.respond(f, response{400, f.status(400, metav1.StatusReasonBadRequest, err.Error())})
		return
	}
	text := query.Get("resourceVersion")
	from, _ := strconv.ParseUint(text, 10, 64) // "" and "0" mean any version
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
		delete(c.watches, w) // the client has already cancelled the watch
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

// send sends an event, with the failure that the script selects. The caller holds the store's lock.
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

// enqueue adds a piece to the queue of the watch. flush sends the piece after `delay`, but not before earlier pieces.
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

// flush sends the pieces that are due. It holds the lock while it sends, because the pieces must stay in order.
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

// write passes a piece to the connection. If the piece is an event, write records it as sent.
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

// Spoil is a failure to deliver one event to one watch.
type Spoil uint8

// The failures to deliver an event. The zero value, Keep, delivers the event.
const (
	Keep   Spoil = iota
	Drop         // does not send the event
	Double       // sends the event twice
	Swap         // sends the event after the next one
	Gone         // sends an ERROR event with code 410 instead, and ends the watch
	End          // ends the watch normally before the event
	Abort        // resets the stream before the event
	Garble       // sends invalid bytes instead of the event
)

// Script returns the failure for event n of watch k. It must be a pure function. Both numbers count from 0. The stub
// numbers watches in the order in which clients open them, and a resumed watch gets a new number.
type Script func(k, n int64) Spoil

// Spoils returns a script that looks up failures in `list`, by the numbers of the watch and of the event.
func Spoils(list map[int64]map[int64]Spoil) Script {
	return func(k, n int64) Spoil { return list[k][n] }
}

// piece is one message to a watch: an event, invalid bytes, or the end of the watch.
type piece struct {
	event *event // the event to send; nil for invalid bytes and for the end
	spoil Spoil
}

// eventScript applies a script to the events of one watch. It uses no clock and no I/O.
type eventScript struct {
	script Script
	watch  int64
	n      int64
	held   *event // event to send after the next one (Swap), or nil
	ended  bool
}

// next returns the pieces to send for the next event of the watch.
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
		if t.held == nil { // hold back only one event at a time
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
