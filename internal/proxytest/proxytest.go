// Package proxytest runs a forward proxy for tests. The proxy serves HTTP CONNECT and SOCKS 5 on one loopback address.
package proxytest

import (
	"bufio"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"sync"
	"testing"
)

// Proxy is a running proxy. Set the fields before a client connects.
type Proxy struct {
	// To is the destination of all connections, as host:port. Empty means the address that the client requests.
	To string
	// Login is the user:password that a CONNECT request must contain. Empty means that the proxy requires no login.
	Login string
	// Refuse is the HTTP status with which the proxy refuses every CONNECT request. Zero means that it refuses no request.
	Refuse int

	listener net.Listener
	mu       sync.Mutex
	asked    []string
	open     map[net.Conn]struct{}
	stopped  bool
}

// Start starts a proxy. It serves until the test ends.
func Start(t testing.TB) *Proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &Proxy{listener: l, open: map[net.Conn]struct{}{}}
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			serving.Go(func() { p.serve(c) })
		}
	})
	t.Cleanup(func() {
		p.Stop()
		serving.Wait()
	})
	return p
}

// Addr returns the proxy's address as host:port.
func (p *Proxy) Addr() string { return p.listener.Addr().String() }

// Asked returns the addresses that clients have requested, in order.
func (p *Proxy) Asked() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.asked)
}

// Stop makes the proxy refuse new connections, and ends the open connections.
func (p *Proxy) Stop() {
	p.listener.Close()
	p.mu.Lock()
	p.stopped = true
	p.mu.Unlock()
	p.Cut()
}

// Cut ends all open connections.
func (p *Proxy) Cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.open {
		c.Close()
	}
}

func (p *Proxy) keep(c net.Conn) (release func()) {
	p.mu.Lock()
	p.open[c] = struct{}{}
	if p.stopped { // Stop was called while this connection was accepted or opened
		c.Close()
	}
	p.mu.Unlock()
	return func() {
		c.Close()
		p.mu.Lock()
		delete(p.open, c)
		p.mu.Unlock()
	}
}

func (p *Proxy) serve(c net.Conn) {
	defer p.keep(c)()
	in := bufio.NewReader(c)
	first, err := in.Peek(1)
	if err != nil {
		return
	}
	var server net.Conn
	if first[0] == socksVersion {
		server, err = p.socks(c, in)
	} else {
		server, err = p.connect(c, in)
	}
	if err != nil {
		return
	}
	defer p.keep(server)()
	var back sync.WaitGroup
	back.Go(func() {
		_, _ = io.Copy(c, server)
		c.Close()
	})
	_, _ = io.Copy(server, in)
	server.Close()
	back.Wait()
}

func (p *Proxy) dial(address string) (net.Conn, error) {
	p.mu.Lock()
	p.asked = append(p.asked, address)
	p.mu.Unlock()
	if p.To != "" {
		address = p.To
	}
	return net.Dial("tcp", address)
}

func (p *Proxy) connect(c net.Conn, in *bufio.Reader) (net.Conn, error) {
	request, err := http.ReadRequest(in)
	if err != nil {
		return nil, err
	}
	status := http.StatusOK
	login := "Basic " + base64.StdEncoding.EncodeToString([]byte(p.Login))
	switch {
	case p.Refuse != 0:
		status = p.Refuse
	case request.Method != http.MethodConnect:
		status = http.StatusMethodNotAllowed
	case p.Login != "" && request.Header.Get("Proxy-Authorization") != login:
		status = http.StatusProxyAuthRequired
	}
	var server net.Conn
	if status == http.StatusOK {
		if server, err = p.dial(request.Host); err != nil {
			status = http.StatusBadGateway
		}
	}
	fmt.Fprintf(c, "HTTP/1.1 %d %s\r\n\r\n", status, http.StatusText(status))
	if server == nil {
		return nil, errors.New("refused")
	}
	return server, nil
}

// socksVersion is the first byte of each message of RFC 1928.
const socksVersion = 5

func (p *Proxy) socks(c net.Conn, in *bufio.Reader) (net.Conn, error) {
	head := make([]byte, 2)
	if _, err := io.ReadFull(in, head); err != nil {
		return nil, err
	}
	if _, err := io.CopyN(io.Discard, in, int64(head[1])); err != nil { // skip the list of authentication methods
		return nil, err
	}
	if _, err := c.Write([]byte{socksVersion, 0}); err != nil {
		return nil, err
	}
	request := make([]byte, 4)
	if _, err := io.ReadFull(in, request); err != nil {
		return nil, err
	}
	length := map[byte]int{1: 4, 4: 16}[request[3]]
	if request[3] == 3 { // the target is a name: its length comes first
		n, err := in.ReadByte()
		if err != nil {
			return nil, err
		}
		length = int(n)
	}
	target := make([]byte, length+2)
	if _, err := io.ReadFull(in, target); err != nil {
		return nil, err
	}
	host := string(target[:length])
	if ip, ok := netip.AddrFromSlice(target[:length]); ok && request[3] != 3 {
		host = ip.String()
	}
	server, err := p.dial(net.JoinHostPort(host, strconv.Itoa(int(binary.BigEndian.Uint16(target[length:])))))
	answer := []byte{socksVersion, 0, 0, 1, 0, 0, 0, 0, 0, 0}
	if err != nil {
		answer[1] = 5 // connection refused
	}
	if _, told := c.Write(answer); told != nil && server != nil {
		server.Close()
		return nil, told
	}
	return server, err
}
