package stubapi

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"net/url"
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
	options  Options
	ca       []byte // PEM
	keys     tls.Certificate
	listener net.Listener
	store    *store
	record   record
	running  sync.WaitGroup

	mu     sync.Mutex
	policy Policy
	conns  map[*conn]struct{}
	dialed int
	closed bool
}

// Start serves until Close.
func Start(o Options) (*Server, error) {
	ca, keys, err := newCertificate()
	if err != nil {
		return nil, err
	}
	if o.MaxStreams == 0 {
		o.MaxStreams = 100
	}
	if o.Listener == nil {
		if o.Listener, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
			return nil, err
		}
	}
	s := &Server{options: o, policy: o.Policy, ca: ca, keys: keys, listener: o.Listener, store: newStore(), conns: map[*conn]struct{}{}}
	s.record.off = o.NoRecord
	s.running.Go(s.accept)
	return s, nil
}

// Addr is host:port.
func (s *Server) Addr() string { return s.listener.Addr().String() }

// Config is how clients reach the server. Over Pipes it dials them.
func (s *Server) Config() *rest.Config {
	c := &rest.Config{Host: "https://" + s.Addr(), TLSClientConfig: rest.TLSClientConfig{CAData: s.ca}, QPS: -1}
	if p, ok := s.listener.(*Pipes); ok {
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
	type one struct {
		resource
		*watch
	}
	var all []one
	s.store.mu.Lock()
	for r, c := range s.store.objects {
		for w := range c.watches {
			all = append(all, one{r, w})
		}
	}
	s.store.mu.Unlock()
	for _, w := range all {
		f(w.resource, w.watch)
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
	s.mu.Lock()
	s.closed = true
	_ = s.listener.Close()
	for c := range s.conns {
		c.abort()
	}
	s.mu.Unlock()
	s.running.Wait()
}

func (s *Server) accept() {
	config := &tls.Config{
		Certificates: []tls.Certificate{s.keys}, NextProtos: []string{"h2"}, MinVersion: tls.VersionTLS13,
	}
	for {
		nc, err := s.listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			continue // one client's trouble
		}
		c := newConn(s, tls.Server(nc, config))
		s.mu.Lock()
		if s.closed {
			s.mu.Unlock()
			_ = nc.Close()
			return
		}
		s.conns[c] = struct{}{}
		c.number = s.dialed
		s.dialed++
		s.running.Go(c.write)
		s.running.Go(func() {
			c.read()
			s.mu.Lock()
			delete(s.conns, c)
			s.mu.Unlock()
		})
		s.mu.Unlock()
	}
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
	path, query, _ := cut(st.path)
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

// newCertificate makes a server's certificate, which is its own authority.
func newCertificate() (ca []byte, server tls.Certificate, err error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, server, fmt.Errorf("stub's key: %w", err)
	}
	now := time.Now()
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "stubapi"},
		NotBefore: now.Add(-time.Hour), NotAfter: now.Add(1000 * time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		DNSNames:    []string{"localhost"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, server, fmt.Errorf("stub's certificate: %w", err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, nil
}
