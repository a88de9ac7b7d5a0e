package stubapi

import (
	"context"
	"net"
	"sync"
)

// Pipes is a listener whose connections are pipes in memory. With Pipes, a server and its clients can run in a synctest
// bubble, where time is virtual.
type Pipes struct {
	made   chan net.Conn
	closed chan struct{}
	once   sync.Once
}

// NewPipes returns new Pipes. To use them in a synctest bubble, call NewPipes in the bubble.
func NewPipes() *Pipes {
	return &Pipes{made: make(chan net.Conn), closed: make(chan struct{})}
}

// DialContext opens a connection to the listener. It ignores network and address.
func (p *Pipes) DialContext(ctx context.Context, _, _ string) (net.Conn, error) {
	ours, theirs := net.Pipe()
	select {
	case p.made <- theirs:
		return ours, nil
	case <-p.closed:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Accept waits for the next connection.
func (p *Pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.made:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

// Close makes Accept return net.ErrClosed. Open connections stay open.
func (p *Pipes) Close() error {
	p.once.Do(func() { close(p.closed) })
	return nil
}

// Addr returns an address for which the stub's certificate is valid.
func (p *Pipes) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 6443} }
