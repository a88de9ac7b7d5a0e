package network

import (
	"fmt"
	"net"
	"sync"
	"time"
)

// Listener is a link with its own port: a client that connects to it reaches the other component.
type Listener struct {
	link *Link
	port *port
}

// Listen makes the link from one component to another. listen is an address of the loopback network
// (port 0: any), upstream is where the other component listens; it need not be there yet.
func Listen(from, to, listen, upstream string) (*Listener, error) {
	link := newLink(from, to, upstream)
	p, err := open(listen, func(c *net.TCPConn) {
		link.carry(c, c, func(err error) error { return err })
	})
	if err != nil {
		return nil, fmt.Errorf("link %s: %w", link, err)
	}
	return &Listener{link, p}, nil
}

// Link returns the link, to delay and cut it.
func (l *Listener) Link() *Link { return l.link }

// Close ends the listener and its connections, and waits for them.
func (l *Listener) Close() error {
	err := l.port.stop()
	l.link.close()
	l.port.wait()
	return err
}

type port struct {
	listener *net.TCPListener
	serve    func(*net.TCPConn)
	done     chan struct{}
	once     sync.Once
	running  sync.WaitGroup
}

func open(address string, serve func(*net.TCPConn)) (*port, error) {
	addr, err := net.ResolveTCPAddr("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w", address, err)
	}
	if !addr.IP.IsLoopback() {
		return nil, fmt.Errorf("listen on %s: not an address of this machine alone; use 127.0.0.1", address)
	}
	listener, err := net.ListenTCP("tcp", addr)
	if err != nil {
		return nil, err // it names the address
	}
	p := &port{listener: listener, serve: serve, done: make(chan struct{})}
	p.running.Go(p.accept)
	return p, nil
}

func (p *port) accept() {
	for {
		c, err := p.listener.AcceptTCP()
		if err == nil {
			p.running.Go(func() { p.serve(c) })
			continue
		}
		select {
		case <-p.done:
			return
		case <-time.After(10 * time.Millisecond): // out of descriptors: there may be some soon
		}
	}
}

func (p *port) stop() (err error) {
	p.once.Do(func() {
		close(p.done)
		err = p.listener.Close()
	})
	return err
}

func (p *port) wait() { p.running.Wait() }
