// Package h2test provides an HTTP/2 server for tests of clients. The server passes frames to the test and does not
// decode requests. A test can make the server violate the protocol.
package h2test

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// Server is an HTTP/2 server on 127.0.0.1 with its own certificate.
type Server struct {
	// Asked counts the requests that arrived. Connections counts the accepted connections.
	Asked, Connections atomic.Int64

	options Options
	http    *httptest.Server // accepts connections and passes them to serve
}

// Options configures a server. All fields are optional.
type Options struct {
	// Answer handles each complete request, on the connection's read loop. Nil means that the server never responds.
	Answer func(p *Peer, stream uint32)
	// Frame receives every frame before the server handles the frame. It may be nil.
	Frame func(p *Peer, f http2.Frame)
	// Settings are the settings in the server's first frame.
	Settings []http2.Setting
	// Greet sends the server's first frames. If Greet is nil, the server first sends SETTINGS.
	Greet func(p *Peer)
}

// Peer is the server's side of one connection.
type Peer struct {
	// Number is the number of the connection, from 1.
	Number int64

	server *Server
	nc     net.Conn
	mu     sync.Mutex // guards w and its buffer
	w      *http2.Framer
	out    *bufio.Writer
}

// New starts a server. The caller must call Close.
func New(o Options) *Server {
	s := &Server{options: o, http: httptest.NewUnstartedServer(nil)}
	s.http.TLS = &tls.Config{NextProtos: []string{"h2"}, DynamicRecordSizingDisabled: true}
	s.http.Config.TLSNextProto = map[string]func(*http.Server, *tls.Conn, http.Handler){"h2": s.serve}
	s.http.Config.ErrorLog = log.New(io.Discard, "", 0) // hides the errors of aborted handshakes
	s.http.StartTLS()
	return s
}

// Serve starts a server that is closed at the end of the test.
func Serve(t testing.TB, o Options) *Server {
	t.Helper()
	s := New(o)
	t.Cleanup(s.Close)
	return s
}

// Addr returns the server's address, host:port.
func (s *Server) Addr() string { return s.http.Listener.Addr().String() }

// CA returns, in PEM, the certificate that clients must trust.
func (s *Server) CA() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.http.Certificate().Raw})
}

// TLS returns a TLS configuration for a client that trusts the server.
func (s *Server) TLS() *tls.Config {
	return s.http.Client().Transport.(*http.Transport).TLSClientConfig.Clone()
}

// Close stops the server and waits until its connections have ended.
func (s *Server) Close() { s.http.Close() }

// Drop ends all connections abruptly.
func (s *Server) Drop() { s.http.CloseClientConnections() }

func (s *Server) serve(_ *http.Server, nc *tls.Conn, _ http.Handler) {
	p := &Peer{server: s, nc: nc, out: bufio.NewWriterSize(nc, 64<<10), Number: s.Connections.Add(1)}
	p.w = http2.NewFramer(p.out, nil)
	p.w.AllowIllegalWrites = true
	p.serve()
}

func (p *Peer) serve() {
	in := bufio.NewReaderSize(p.nc, 64<<10)
	if _, err := in.Discard(len(http2.ClientPreface)); err != nil {
		return
	}
	r := http2.NewFramer(nil, in)
	r.SetReuseFrames()
	if p.server.options.Greet != nil {
		p.server.options.Greet(p)
	} else {
		p.Send(func(w *http2.Framer) { _ = w.WriteSettings(p.server.options.Settings...) })
	}
	for {
		f, err := r.ReadFrame()
		if err != nil {
			return
		}
		if p.server.options.Frame != nil {
			p.server.options.Frame(p, f)
		}
		ended := false
		switch f := f.(type) {
		case *http2.SettingsFrame:
			if !f.IsAck() {
				p.Queue(func(w *http2.Framer) { _ = w.WriteSettingsAck() })
			}
		case *http2.HeadersFrame:
			p.server.Asked.Add(1)
			ended = f.StreamEnded()
		case *http2.DataFrame:
			ended = f.StreamEnded()
		}
		if ended && p.server.options.Answer != nil {
			p.server.options.Answer(p, f.Header().StreamID)
		}
		if in.Buffered() == 0 { // send all responses in one write when no more requests have arrived
			p.Send(func(*http2.Framer) {})
		}
	}
}

// Queue queues the frames that the function write produces. The server sends them when it has read all received data.
func (p *Peer) Queue(write func(*http2.Framer)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	write(p.w)
}

// Send immediately sends the frames that the function write produces. It is safe for concurrent use.
func (p *Peer) Send(write func(*http2.Framer)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	write(p.w)
	_ = p.out.Flush()
}

// Hang closes the TCP connection abruptly.
func (p *Peer) Hang() { p.nc.Close() }

// Block returns the header block of a response with the given status and content-length. If length is negative, there
// is no content-length.
func Block(status, length int) []byte {
	var b bytes.Buffer
	e := hpack.NewEncoder(&b)
	e.SetMaxDynamicTableSize(0)
	fields := []hpack.HeaderField{
		{Name: ":status", Value: fmt.Sprint(status)}, {Name: "audit-id", Value: "6a1f9d4e-7f0e-4b9c-9d0e-0a3f5a1a2b3c"},
		{Name: "content-type", Value: "application/json"}, {Name: "date", Value: "Mon, 02 Nov 2026 10:00:00 GMT"},
	}
	if length >= 0 {
		fields = append(fields, hpack.HeaderField{Name: "content-length", Value: fmt.Sprint(length)})
	}
	for _, f := range fields {
		_ = e.WriteField(f)
	}
	return b.Bytes()
}

// Respond returns a function for Options.Answer that responds to every request with the given status and body.
func Respond(status int, body []byte) func(*Peer, uint32) {
	headers := Block(status, len(body))
	return func(p *Peer, id uint32) {
		p.Queue(func(w *http2.Framer) {
			_ = w.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: headers, EndHeaders: true})
			_ = w.WriteData(id, true, body)
		})
	}
}

// Await waits until `met` returns true. After half a minute, it fails the test with a message that names `what`.
func Await(t testing.TB, what string, met func() bool) {
	t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	late := time.After(30 * time.Second)
	for !met() {
		select {
		case <-tick.C:
		case <-late:
			t.Fatalf("%s did not happen within half a minute", what)
		}
	}
}
