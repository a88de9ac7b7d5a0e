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

// Options configure a Server. With the zero value, the server behaves like an API server and responds immediately.
type Options struct {
	// Policy decides how the server responds to each request. If nil, the server executes all requests.
	Policy Policy
	// Script selects the failures of the events of each watch. If nil, the server delivers all events.
	Script Script
	// EventDelay returns the time from a write until the stub sends the resulting event, number n of watch k. Events
	// stay in order. If EventDelay is nil, the stub sends an event immediately, before it responds to the write.
	EventDelay func(k, n int64) time.Duration
	// MaxStreams is the maximum number of concurrent streams of a connection. The server enforces it. Zero means 100,
	// the default of kube-apiserver.
	MaxStreams uint32
	// NoRecord makes the server count requests and events instead of recording them. This saves memory in tests that
	// send many of them.
	NoRecord bool
	// Listener accepts the connections. If nil, the server listens on 127.0.0.1. A Pipes provides connections in
	// memory.
	Listener net.Listener
}

// Server is a running stub of an API server.
type Server struct {
	options Options
	http    *httptest.Server // accepts connections and hands them to the method `serve`
	store   *store
	record  record
	writing sync.WaitGroup

	mu     sync.Mutex
	policy Policy
	dialed int
}

// Start starts a server. It runs until Close is called.
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
	s := &Server{options: o, policy: o.Policy, store: &store{rv: 100, objects: map[resource]*collection{}}}
	s.record.off = o.NoRecord
	s.http = &httptest.Server{
		Listener: o.Listener,
		TLS:      &tls.Config{NextProtos: []string{"h2"}, MinVersion: tls.VersionTLS13},
		Config: &http.Server{
			TLSNextProto: map[string]func(*http.Server, *tls.Conn, http.Handler){"h2": s.serve},
			ErrorLog:     log.New(io.Discard, "", 0), // discard reports of aborted handshakes
		},
	}
	s.http.StartTLS()
	return s, nil
}

// Addr returns the server's address as host:port.
func (s *Server) Addr() string { return s.options.Listener.Addr().String() }

// Config returns a client configuration for the server. If Options.Listener is a Pipes, the clients connect through it.
func (s *Server) Config() *rest.Config {
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.http.Certificate().Raw})
	c := &rest.Config{Host: "https://" + s.Addr(), TLSClientConfig: rest.TLSClientConfig{CAData: ca}, QPS: -1}
	if p, ok := s.options.Listener.(*Pipes); ok {
		c.Dial = p.DialContext
	}
	return c
}

// SetPolicy replaces the policy. The new policy applies to all requests that the server receives after this call.
func (s *Server) SetPolicy(p Policy) {
	s.mu.Lock()
	s.policy = p
	s.mu.Unlock()
}

// Compact removes the history up to the current version. A watch that starts at an earlier version gets 410.
func (s *Server) Compact() {
	s.store.mu.Lock()
	defer s.store.mu.Unlock()
	s.store.rv++
	s.store.compacted = s.store.rv
}

// EndWatches ends all open watches normally.
func (s *Server) EndWatches() {
	s.eachWatch(func(_ resource, w *watch) { w.write(due{piece: piece{spoil: End}}) })
}

// Bookmark increments the resource version and sends a bookmark with the new version to all watches.
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

// Close closes all connections, and returns when all goroutines that write to them have ended.
func (s *Server) Close() {
	s.http.Close()
	s.writing.Wait()
}

func (s *Server) serve(_ *http.Server, nc *tls.Conn, _ http.Handler) {
	c := newConn(s, nc)
	s.mu.Lock()
	c.number = s.dialed
	s.dialed++
	s.mu.Unlock()
	s.writing.Go(c.write)
	c.read()
}

// after calls f after the time d, or immediately if d is not positive.
func (s *Server) after(d time.Duration, f func()) {
	if d <= 0 {
		f()
		return
	}
	time.AfterFunc(d, f)
}

// received handles a request whose body is complete.
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

// answer executes a request and responds to it, or injects the fault in a.
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
