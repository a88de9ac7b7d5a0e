package kubeletapi

import (
	"net"
	"net/netip"
	"sync"
)

type connections struct {
	node func(netip.AddrPort) Node

	mu   sync.Mutex
	open map[*connection]bool
}

// reset resets the connections to each node n for which of(n) is true, as if the node's machine had failed.
func (all *connections) reset(of func(Node) bool) {
	all.mu.Lock()
	var some []*connection
	for c := range all.open {
		if of(c.node) {
			some = append(some, c)
		}
	}
	all.mu.Unlock()
	for _, c := range some {
		reset(c.Conn)
		c.Close()
	}
}

func reset(c net.Conn) {
	if tcp, ok := c.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0) // fails only if the connection is already closed
	}
	c.Close()
}

// listener accepts connections, and resets connections to nodes that are down.
type listener struct {
	net.Listener
	all *connections
}

func (l *listener) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		var node Node
		if at, err := netip.ParseAddrPort(c.LocalAddr().String()); err == nil {
			node = l.all.node(at)
		}
		if node == nil {
			reset(c)
			continue
		}
		made := &connection{Conn: c, node: node, all: l.all, closed: make(chan struct{})}
		l.all.mu.Lock()
		l.all.open[made] = true
		l.all.mu.Unlock()
		return made, nil
	}
}

// connection is a connection to a node. It hangs while the node is unreachable.
type connection struct {
	net.Conn
	node   Node
	all    *connections
	once   sync.Once
	closed chan struct{}
}

func (c *connection) hang() {
	if reached := c.node.Unreachable(); reached != nil {
		select {
		case <-reached:
		case <-c.closed:
		}
	}
}

func (c *connection) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.hang()
	return n, err
}

func (c *connection) Write(p []byte) (int, error) {
	c.hang()
	return c.Conn.Write(p)
}

func (c *connection) Close() error {
	c.once.Do(func() { close(c.closed) })
	c.all.mu.Lock()
	delete(c.all.open, c)
	c.all.mu.Unlock()
	return c.Conn.Close()
}
