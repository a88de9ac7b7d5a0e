package traffic

import (
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// Writes up to smallWrite bytes are held back for up to coalesceDelay and
// coalesceLimit bytes together.
const (
	smallWrite    = 64
	coalesceLimit = 1 << 10
	coalesceDelay = 100 * time.Millisecond
)

// coalescing is a connection, below TLS, that holds back small writes and
// sends them together, except while a request is on its way.
//
// net/http tells the server after every 4 KiB read, by a WINDOW_UPDATE and a
// system call of its own, that it has read them. With 2,000 watches of one
// object those calls were a quarter of the generator's CPU time, the largest
// item of its profile. A TLS record with one or two such frames is at most 55
// bytes; twenty of them stand for 80 KiB, of windows of 256 KiB and more, so
// the server does not wait for them. The delay is long since each timer that
// fires costs as much as the write that it saves: with 5 ms nothing was won,
// with 100 ms a fifth of all CPU time (2,000 watches, 5 events/s each, four
// pairs of runs).
type coalescing struct {
	net.Conn

	// urgent is how many requests are on their way: until they are answered
	// nothing is held back.
	urgent atomic.Int64

	mu    sync.Mutex
	held  []byte
	timer *time.Timer // runs while something is held back
	err   error       // of a delayed write
}

func (c *coalescing) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return 0, c.err
	}
	atOnce := len(p) > smallWrite || c.urgent.Load() > 0
	if atOnce && len(c.held) == 0 {
		return c.Conn.Write(p)
	}
	c.held = append(c.held, p...)
	if atOnce || len(c.held) >= coalesceLimit {
		if err := c.flush(); err != nil {
			return 0, err
		}
		return len(p), nil
	}
	if c.timer == nil {
		c.timer = time.AfterFunc(coalesceDelay, func() {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.err = c.flush()
		})
	} else if len(c.held) == len(p) {
		c.timer.Reset(coalesceDelay)
	}
	return len(p), nil
}

// flush sends what is held back. The lock is held.
func (c *coalescing) flush() error {
	if len(c.held) == 0 {
		return c.err
	}
	_, err := c.Conn.Write(c.held)
	c.held = c.held[:0]
	return err
}

// Close sends what is held back: the last is TLS's own goodbye.
func (c *coalescing) Close() error {
	c.mu.Lock()
	if c.timer != nil {
		c.timer.Stop()
	}
	_ = c.flush()
	c.mu.Unlock()
	return c.Conn.Close()
}
