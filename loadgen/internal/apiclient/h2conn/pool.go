package h2conn

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// restoreAfter is the wait after a failed dial before the pool dials again to replace a lost connection. The wait
// applies only while the pool has a connection with a free stream.
const restoreAfter = time.Second

// Pool holds the connections of one client to one server. The pool gives new streams to a fixed number of connections
// (the spread) in turn. It uses further connections only when these are full. A server has one write loop per
// connection, so with a single connection a client would measure the queue of that loop. The pool drops lost
// connections, and never repeats a request. A Pool is safe for concurrent use.
type Pool struct {
	addr    string
	options Options
	spread  int
	ctx     context.Context // context of all dials
	cancel  context.CancelFunc

	mu        sync.Mutex
	conns     []*Conn // connections that accept new streams
	leaving   []*Conn // connections that accept no new streams, but still have open streams
	next      int
	dialling  *dialling // current dial; nil if no dial is in progress
	failures  int64
	failure   error
	restoreAt time.Time
	closed    bool
	reads     []*Conn // memory that Receive reuses

	// rmu is the innermost lock: a goroutine may lock rmu while it holds the pool's mu or a connection's mu. A
	// goroutine that holds rmu must not lock another mutex.
	rmu     sync.Mutex
	starved atomic.Bool   // whether a goroutine waits until changed is closed
	changed chan struct{} // the channel that Changed returns
}

// dialling is one attempt to open a connection.
type dialling struct {
	done chan struct{}
	err  error
}

// NewPool returns a pool that dials when it is first used. A spread below 1 means 1.
func NewPool(addr string, o Options, spread int) *Pool {
	p := &Pool{addr: addr, options: o, spread: max(spread, 1), changed: make(chan struct{})}
	p.ctx, p.cancel = context.WithCancel(context.Background())
	return p
}

// Open dials until the number of connections reaches the spread, so that no measured stream waits for a handshake.
func (p *Pool) Open(ctx context.Context) error {
	for {
		p.mu.Lock()
		if p.closed {
			p.mu.Unlock()
			return ErrClosed
		}
		p.sort()
		if len(p.conns) >= p.spread {
			p.mu.Unlock()
			return nil
		}
		d := p.dial()
		p.mu.Unlock()
		select {
		case <-d.done:
			if d.err != nil {
				return d.err
			}
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// TryAcquire returns a connection with a free stream. It does not reserve the stream. If no stream is free, it returns
// ErrBusy, and starts a dial unless one is in progress; Changed reports when to try again. After Close it returns
// ErrClosed.
func (p *Pool) TryAcquire() (*Conn, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, ErrClosed
	}
	c := p.pick()
	if c == nil {
		// From here on, a stream that ends closes p.changed. Pick again, because a stream may have ended since the
		// first pick.
		p.starve()
		if c = p.pick(); c == nil {
			p.dial()
			return nil, ErrBusy
		}
	}
	if len(p.conns) < p.spread && p.dialling == nil && time.Now().After(p.restoreAt) {
		p.dial()
	}
	return c, nil
}

// Acquire is like TryAcquire, but waits for a free stream. If a dial fails in the meantime, it returns the *DialError.
func (p *Pool) Acquire(ctx context.Context) (*Conn, error) {
	for {
		before, _ := p.Failed()
		c, err := p.TryAcquire()
		if err != ErrBusy {
			return c, err
		}
		select {
		case <-p.Changed():
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
		if n, err := p.Failed(); n != before {
			return nil, err
		}
	}
}

// Changed returns a channel that is closed when TryAcquire may succeed again after ErrBusy, or when a dial has failed.
func (p *Pool) Changed() <-chan struct{} {
	p.rmu.Lock()
	defer p.rmu.Unlock()
	return p.changed
}

// Failed returns the number of dials that have failed so far, and the error of the last one, a *DialError.
func (p *Pool) Failed() (n int64, last error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.failures, p.failure
}

// Backlog returns the number of bytes that the kernel has received and the pool has not read, or 0 if unknown.
func (p *Pool) Backlog() int64 {
	p.mu.Lock()
	conns := append(slices.Clone(p.conns), p.leaving...)
	p.mu.Unlock()
	var sum int64
	for _, c := range conns {
		sum += c.Backlog()
	}
	return sum
}

// Receive reads the data that has arrived on deferred connections. If `all` is true, it reads all connections,
// otherwise only those with open streams. Calls must not be concurrent.
func (p *Pool) Receive(all bool) {
	p.mu.Lock()
	p.reads = append(append(p.reads[:0], p.conns...), p.leaving...)
	p.mu.Unlock()
	for _, c := range p.reads {
		if all || c.busy() {
			c.Receive()
		}
	}
	clear(p.reads)
}

// Close ends all connections and waits until they have ended. Their streams end with ErrClosed. A Handler must not call
// Close.
func (p *Pool) Close() {
	p.mu.Lock()
	p.closed = true
	conns, d := append(slices.Clone(p.conns), p.leaving...), p.dialling
	p.mu.Unlock()
	p.cancel()
	for _, c := range conns {
		c.Close()
	}
	for _, c := range conns {
		<-c.Done()
	}
	if d != nil {
		<-d.done
	}
	p.notify()
}

// pick returns a connection with a free stream. It returns nil if all streams are in use. The caller holds mu.
func (p *Pool) pick() *Conn {
	first := min(p.spread, len(p.conns))
	for i, c := range p.conns {
		if i < first { // round robin
			i = (p.next + i) % first
			c = p.conns[i]
		}
		n, err := c.free()
		if err != nil {
			p.sort()
			return p.pick()
		}
		if n > 0 {
			if i < first {
				p.next = i + 1
			}
			return c
		}
	}
	return nil
}

// sort moves the connections that accept no new streams from conns to leaving. The caller holds mu.
func (p *Pool) sort() {
	p.conns = slices.DeleteFunc(p.conns, func(c *Conn) bool {
		if c.Usable() {
			return false
		}
		p.leaving = append(p.leaving, c)
		return true
	})
}

// dial starts a dial, unless one is in progress, and returns the current dial. The caller holds mu.
func (p *Pool) dial() *dialling {
	if p.dialling != nil {
		return p.dialling
	}
	d := &dialling{done: make(chan struct{})}
	p.dialling = d
	go func() {
		defer close(d.done)
		c, err := dial(p.ctx, p.addr, p.options, p)
		p.mu.Lock()
		closed := p.closed
		p.dialling, d.err = nil, err
		switch {
		case closed:
			d.err = ErrClosed
		case err != nil:
			p.failures++
			p.failure = err
			p.restoreAt = time.Now().Add(restoreAfter)
		case c.Err() == nil: // otherwise the connection has already ended
			p.conns = append(p.conns, c)
		}
		p.mu.Unlock()
		if closed && c != nil {
			c.Close()
			<-c.Done()
		}
		p.notify()
	}()
	return d
}

func (p *Pool) ended(c *Conn) {
	p.mu.Lock()
	is := func(o *Conn) bool { return o == c }
	p.conns, p.leaving = slices.DeleteFunc(p.conns, is), slices.DeleteFunc(p.leaving, is)
	p.mu.Unlock()
	p.notify()
}

// starve makes Changed return an open channel. The next free stream, new connection or failed dial closes the channel.
// The caller holds mu.
func (p *Pool) starve() {
	p.rmu.Lock()
	defer p.rmu.Unlock()
	if !p.starved.Load() {
		p.changed = make(chan struct{})
		p.starved.Store(true)
	}
}

// freed tells the pool that a stream became free. A connection calls it while holding the connection's mu.
func (p *Pool) freed() {
	if p.starved.Load() {
		p.notify()
	}
}

func (p *Pool) notify() {
	p.rmu.Lock()
	defer p.rmu.Unlock()
	if p.starved.Swap(false) {
		close(p.changed)
	}
}
