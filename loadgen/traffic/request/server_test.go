package request

import (
	"bufio"
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
	"k8s.io/client-go/rest"

	"github.com/stormglass/stormglass/loadgen/traffic"
)

// server speaks HTTP/2 by the frame, well or badly, and cheaply: it does not
// decode what is asked.
type server struct {
	listener net.Listener
	ca       []byte // PEM
	answer   func(*peer, uint32)
	streams  uint32 // allowed at a time
	asked    atomic.Int64

	mu    sync.Mutex
	peers map[*peer]bool
	done  sync.WaitGroup
}

// peer is one client's connection.
type peer struct {
	server *server
	nc     net.Conn
	mu     sync.Mutex // of w and its buffer
	w      *http2.Framer
	out    *bufio.Writer
	number int // of the connection
}

func newServer(answer func(*peer, uint32)) (*server, error) {
	s := &server{answer: answer, streams: 250, peers: map[*peer]bool{}}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return nil, err
	}
	s.ca = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	s.listener, err = tls.Listen("tcp", "127.0.0.1:0", &tls.Config{
		Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}, NextProtos: []string{"h2"},
		DynamicRecordSizingDisabled: true,
	})
	if err != nil {
		return nil, err
	}
	s.done.Go(s.accept)
	return s, nil
}

// serve is a server of the test's.
func serve(t testing.TB, answer func(*peer, uint32)) *server {
	t.Helper()
	s, err := newServer(answer)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.close)
	return s
}

func (s *server) target() traffic.Target {
	return traffic.Target{
		Config: &rest.Config{Host: "https://" + s.listener.Addr().String(), TLSClientConfig: rest.TLSClientConfig{CAData: s.ca}},
		Seed:   1,
	}
}

func (s *server) close() {
	s.listener.Close()
	s.drop()
	s.done.Wait()
}

// drop ends all connections.
func (s *server) drop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for p := range s.peers {
		p.nc.Close()
	}
}

func (s *server) accept() {
	for number := 0; ; number++ {
		nc, err := s.listener.Accept()
		if err != nil {
			return
		}
		p := &peer{server: s, nc: nc, out: bufio.NewWriterSize(nc, 64<<10), number: number}
		p.w = http2.NewFramer(p.out, bufio.NewReaderSize(nc, 64<<10))
		s.mu.Lock()
		s.peers[p] = true
		s.mu.Unlock()
		s.done.Go(func() {
			p.serve()
			nc.Close()
			s.mu.Lock()
			delete(s.peers, p)
			s.mu.Unlock()
		})
	}
}

func (p *peer) serve() {
	in := bufio.NewReaderSize(p.nc, 64<<10)
	if _, err := in.Discard(len(http2.ClientPreface)); err != nil {
		return
	}
	r := http2.NewFramer(nil, in)
	r.SetReuseFrames()
	p.send(func(w *http2.Framer) {
		_ = w.WriteSettings(http2.Setting{ID: http2.SettingMaxConcurrentStreams, Val: p.server.streams})
	}, true)
	for {
		f, err := r.ReadFrame()
		if err != nil {
			return
		}
		switch f := f.(type) {
		case *http2.SettingsFrame:
			if !f.IsAck() {
				p.send(func(w *http2.Framer) { _ = w.WriteSettingsAck() }, true)
			}
		case *http2.HeadersFrame:
			p.server.asked.Add(1)
			if f.StreamEnded() {
				p.server.answer(p, f.StreamID)
			}
		case *http2.DataFrame:
			if f.StreamEnded() {
				p.server.answer(p, f.StreamID)
			}
		}
		if in.Buffered() == 0 { // all that was asked at once is answered at once
			p.send(func(*http2.Framer) {}, true)
		}
	}
}

func (p *peer) send(write func(*http2.Framer), flush bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	write(p.w)
	if flush {
		p.out.Flush()
	}
}

// block is the header block of an answer; a length below 0 is left out.
func block(status, length int) []byte {
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

// answers is the whole answer to every request.
func answers(status int, body []byte) func(*peer, uint32) {
	headers := block(status, len(body))
	return func(p *peer, id uint32) {
		p.send(func(w *http2.Framer) {
			_ = w.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: headers, EndHeaders: true})
			_ = w.WriteData(id, true, body)
		}, false)
	}
}
