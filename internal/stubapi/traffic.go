package stubapi

import (
	"net"
	"sync/atomic"
)

// Traffic counts the bytes that connections receive and send, including TLS.
type Traffic struct{ Received, Sent atomic.Int64 }

// Count returns a listener that counts the bytes of the connections of l.
func (t *Traffic) Count(l net.Listener) net.Listener { return counted{l, t} }

type counted struct {
	net.Listener
	traffic *Traffic
}

func (c counted) Accept() (net.Conn, error) {
	conn, err := c.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return countedConn{conn, c.traffic}, nil
}

type countedConn struct {
	net.Conn
	traffic *Traffic
}

func (c countedConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.traffic.Received.Add(int64(n))
	return n, err
}

func (c countedConn) Write(b []byte) (int, error) {
	n, err := c.Conn.Write(b)
	c.traffic.Sent.Add(int64(n))
	return n, err
}
