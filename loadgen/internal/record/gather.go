package record

import (
	"context"
	"net"
	"time"
)

const (
	// gatherPause is the pause between reads of an exposition. Components write it in pieces of 4 KB, and to wake this process for each costs
	// more CPU than to parse what it brings.
	gatherPause  = 2 * time.Millisecond
	gatherBuffer = 128 << 10
)

// dialGathering opens a connection that reads in large pieces what comes in small ones.
func dialGathering(ctx context.Context, network, address string) (net.Conn, error) {
	// The times are those of net/http's default transport.
	c, err := (&net.Dialer{Timeout: 30 * time.Second, KeepAlive: 30 * time.Second}).DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	return &gathering{Conn: c}, nil
}

// gathering is a connection that waits a little after a read that did not fill its buffer: more is on its way. One reads at a time.
type gathering struct {
	net.Conn
	buffer []byte // made with the first read
	read   []byte // of buffer, not handed out yet
	more   bool   // the last read did not fill it
}

// Read is net.Conn's.
func (g *gathering) Read(p []byte) (int, error) {
	if len(g.read) == 0 {
		if g.buffer == nil {
			g.buffer = make([]byte, gatherBuffer)
		}
		if g.more {
			time.Sleep(gatherPause)
		}
		n, err := g.Conn.Read(g.buffer)
		g.read, g.more = g.buffer[:n], n < len(g.buffer)
		if n == 0 {
			return 0, err
		}
	}
	n := copy(p, g.read)
	g.read = g.read[n:]
	return n, nil
}
