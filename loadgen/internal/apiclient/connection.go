package apiclient

import (
	"context"
	"slices"
	"sync"

	"github.com/stormglass/stormglass/loadgen/internal/apiclient/h2conn"
)

// Connection holds a client's connections to the API server. It dials at the first call of Get, and again after a
// connection was lost. The zero value is ready to use. A Connection is safe for concurrent use.
type Connection struct {
	mu      sync.Mutex
	conns   []*h2conn.Conn // the last connection gets the new streams; the earlier ones may still have open streams
	dialing chan struct{}  // closed when the current dial ends; nil if no dial is running
}

// Get returns a usable connection, and dials if none exists. Concurrent calls share one dial.
func (c *Connection) Get(ctx context.Context, dial func(context.Context) (*h2conn.Conn, error)) (*h2conn.Conn, error) {
	return c.GetFree(ctx, dial, 0)
}

// GetFree returns the current connection if it is usable and has at least `least` free streams. Otherwise it dials a
// new connection. Open streams stay on the old connections.
func (c *Connection) GetFree(ctx context.Context, dial func(context.Context) (*h2conn.Conn, error), least int) (*h2conn.Conn, error) {
	for {
		c.mu.Lock()
		if n := len(c.conns); n > 0 && c.conns[n-1].Usable() && (least == 0 || c.conns[n-1].Free() >= least) {
			defer c.mu.Unlock()
			return c.conns[n-1], nil
		}
		if wait := c.dialing; wait != nil {
			c.mu.Unlock()
			select {
			case <-wait:
				continue
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		}
		over := make(chan struct{})
		c.dialing = over
		c.mu.Unlock()
		conn, err := dial(ctx)
		c.mu.Lock()
		c.conns = slices.DeleteFunc(c.conns, func(o *h2conn.Conn) bool { return o.Err() != nil })
		if err == nil {
			c.conns = append(c.conns, conn)
		}
		c.dialing = nil
		c.mu.Unlock()
		close(over)
		return conn, err
	}
}

// Drop ends all connections. If `abrupt` is true, it sends a TCP reset, like a client that lost power. Otherwise it
// closes the TCP connections normally. The next Get dials a new connection.
func (c *Connection) Drop(abrupt bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, o := range c.conns {
		if abrupt {
			o.Abort()
		} else {
			o.Close()
		}
	}
}

// Ended waits until all connections have ended, or ctx is done. Call it after Drop.
func (c *Connection) Ended(ctx context.Context) {
	c.mu.Lock()
	conns := slices.Clone(c.conns)
	c.mu.Unlock()
	for _, o := range conns {
		select {
		case <-o.Done():
		case <-ctx.Done():
			return
		}
	}
}
