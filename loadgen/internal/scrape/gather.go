package scrape

import (
	"context"
	"net"
	"time"
)

const (
	// gatherPause is the pause between reads of a /metrics response. Components write the response in parts of 4 KB.
	// Waking this process for each part would cost more CPU time than parsing the part.
	gatherPause  = 2 * time.Millisecond
	gatherBuffer = 128 << 10
)

// dialGathering opens a connection that collects small amounts of received data for a large read.
func dialGathering(ctx context.Context, network, address string) (net.Conn, error) {
	// The default transport of net/http has the same timeouts.
	c, err := (&net.Dialer{Timeout: 30 * time.Second, KeepAlive: 30 * time.Second}).DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	return &gathering{Conn: c}, nil
}

// gathering is a connection that pauses before a read if the previous read did not fill its buffer, because more data
// will arrive soon. Only one goroutine may read at a time.
type gathering struct {
	net.Conn
	buffer []byte // receives data from the connection; created by the first read
	read   []byte // received data that Read has not returned yet; a part of buffer
	more   bool   // whether to pause, because the last read did not fill buffer
}

// Read implements net.Conn.
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
