package stubapi

import (
	"crypto/tls"
	"encoding/pem"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"time"

	"k8s.io/client-go/rest"
)

// Options of a server; the zero value serves as an API server does, at once.
type Options struct {
	// Policy decides how each request is answered. Nil: all are executed.
	Policy Policy
	// Script selects failures of each watch's events. Nil: all are sent.
	Script Script
	// EventDelay is the time from a write to its event's being sent to watch
	// k as its nth; order is kept. Nil: at once, before the write's answer.
	EventDelay func(k, n int64) time.Duration
	// MaxStreams is the limit of concurrent streams of a connection, which is
	// enforced. Zero means 100, as kube-apiserver has it.
	MaxStreams uint32
	// NoRecord keeps counts only: for floods.
	NoRecord bool
	// Listener serves instead of one on 127.0.0.1; see Pipes.
	Listener net.Listener
}

// Server is a running stub.
type Server struct {
	options Options
	http    *httptest.Server // accepts connections and hands them to serve
	store   *store
	record  record
	writing sync.WaitGroup

	mu     sync.Mutex
	policy Policy
	dialed int
}

// Start serves until Close.
func Start(o Options) (*Server, error) {
	if o.MaxStreams == 0 {
		o.MaxStreams = 100
	}
	if o.Listener == nil {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		o.Listener = l
	}
	s := &Server{options: o, policy: o.Policy, store: newStore()}
	s.record.off = o.NoRecord
	s.http = &httptest.Server{
		Listener: o.Listener,
		TLS:      &tls.Config{NextProtos: []string{"h2"}, MinVersion: tls.VersionTLS13},
		Config: &http.Server{
			TLSNextProto: map[string]func(*http.Server, *tls.Conn, http.Handler){"h2": s.serve},
			ErrorLog:     log.New(io.Discard, "", 0), // handshakes that clients gave up
		},
	}
	s.http.StartTLS()
	return s, nil
}

// Addr is host:port.
func (s *Server) Addr() string { return s.options.Listener.Addr().String() }

// ca is the certificate that clients have to trust, PEM.
func (s *Server) ca() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.http.Certificate().Raw})
}

// Config returns a client configuration for the server. Over Pipes it dials
// them.
func (s *Server) Config() *rest.Config {
	c := &rest.Config{Host: "https://" + s.Addr(), TLSClientConfig: rest.TLSClientConfig{CAData: s.ca()}, QPS: -1}
	if p, ok := s.options.Listener.(*Pipes); ok {
		c.Dial = p.DialContext
	}
	return c
}

// SetPolicy replaces the policy for the requests that are received from now on.
func (s *Server) SetPolicy(p Policy) {
	s.mu.Lock()
	s.policy = p
	s.mu.Unlock()
}

// Compact forgets all versions so far: a watch from one of them gets 410.
func (s *Server) Compact() {
	s.store.mu.Lock()
	defer s.store.mu.Unlock()
	s.store.rv++
	s.store.compacted = s.store.rv
}

// EndWatches ends all open watches, in order.
func (s *Server) EndWatches() {
	s.eachWatch(func(_ resource, w *watch) { w.write(due{piece: piece{spoil: End}}) })
}

// Bookmark tells all watches the present version.
func (s *Server) Bookmark() {
	s.store.mu.Lock()
	s.store.rv++
	s.store.mu.Unlock()
	s.eachWatch(func(r resource, w *watch) {
		s.store.mu.Lock()
		defer s.store.mu.Unlock()
		w.send(s.store.bookmarkOf(r, false))
	})
}

func (s *Server) eachWatch(f func(resource, *watch)) {
	var calls []func()
	s.store.mu.Lock()
	for r, c := range s.store.objects {
		for w := range c.watches {
			calls = append(calls, func() { f(r, w) })
		}
	}
	s.store.mu.Unlock()
	for _, call := range calls {
		call()
	}
}

// OpenWatches returns the number of open watches.
func (s *Server) OpenWatches() int {
	n := 0
	s.eachWatch(func(resource, *watch) { n++ })
	return n
}

// Close hangs up on all clients and returns when nothing runs any more.
func (s *Server) Close() {
	s.http.Close()
	s.writing.Wait()
}

// serve handles a connection until it ends.
func (s *Server) serve(_ *http.Server, nc *tls.Conn, _ http.Handler) {
	c := newConn(s, nc)
	s.mu.Lock()
	c.number = s.dialed
	s.dialed++
	s.mu.Unlock()
	s.writing.Go(c.write)
	c.read()
}

// after calls f after d, at once if that is not over 0.
func (s *Server) after(d time.Duration, f func()) {
	if d <= 0 {
		f()
		return
	}
	time.AfterFunc(d, f)
}

// received handles a request whose body has come.
func (s *Server) received(st *stream) {
	path, query, _ := strings.Cut(st.path, "?")
	values, _ := url.ParseQuery(query)
	q := Request{
		Method: st.method, Path: path, Query: query, At: time.Now(),
		Watch: values.Get("watch") == "1" || values.Get("watch") == "true",
	}
	st.request = s.record.received(q)
	s.mu.Lock()
	policy := s.policy
	s.mu.Unlock()
	var a Answer
	if policy != nil {
		a = policy(st.request)
	}
	s.after(a.After, func() { s.answer(st, a, values) })
}

// answer executes a request and answers it, or does what goes wrong.
func (s *Server) answer(st *stream, a Answer, query url.Values) {
	at, known := locate(st.request.Path)
	spoils := a.Fault == Truncated || a.Fault == Cut || a.Fault == Garbled
	if a.Status != 0 || a.Fault != None && !spoils && !a.Commits {
		s.after(a.Ack, func() { st.spoil(a, nil) })
		return
	}
	if known && st.request.Watch && st.request.Method == http.MethodGet && a.Fault == None {
		s.watch(st, at, query)
		s.record.answered(st.request.N, 200, None)
		return
	}
	f := formOf(st.accept, at.resource)
	var r response
	if known {
		r = s.execute(st, at, query)
	} else if b, ok := discover(st.request.Path); ok {
		f, r = form{}, response{200, b}
	} else {
		r = response{404, f.status(404, "NotFound", "the server could not find the requested resource")}
	}
	s.after(a.Ack, func() {
		if a.Fault != None {
			st.spoil(a, r.body)
			return
		}
		st.respond(f, r)
	})
}
