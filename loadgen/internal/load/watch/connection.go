package watch

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/stormglass/stormglass/loadgen/internal/apiclient/h2conn"
)

// connection is an HTTP/2 connection for watches, with the counts of its read loop. To keep counting cheap, the loop
// locks mu once for each chunk of data.
type connection struct {
	set  *Watches
	conn *h2conn.Conn
	// arrived is the time at which the kernel returned the current read. late is the maximum time by which the
	// generator itself delayed that read.
	arrived, late time.Duration
	// fresh is the number of deliveries that are not in the samples yet. Only the read loop uses it.
	fresh int64
	// full is true if the last attempt to open a stream found no free stream, and no stream has ended since then.
	full atomic.Bool

	mu    sync.Mutex
	tally tally
	run   run
}

// run counts consecutive deliveries with the same latency and the same delay by the generator: for example, deliveries
// of one write to many watches in one read.
type run struct {
	stats *deliveries
	after time.Duration
	late  time.Duration
	n     int64
}

// timed is the connection's socket. It records the time at which each read returned, when all bytes of the read had
// arrived.
type timed struct {
	net.Conn
	connection *connection
}

// SyscallConn returns the raw socket, for reading the lengths of the kernel's queues.
func (t *timed) SyscallConn() (syscall.RawConn, error) {
	if s, ok := t.Conn.(syscall.Conn); ok {
		return s.SyscallConn()
	}
	return nil, errors.ErrUnsupported
}

func (t *timed) Read(p []byte) (int, error) {
	t.connection.countSamples() // the deliveries of the previous read
	n, err := t.Conn.Read(p)
	now := time.Now()
	t.connection.arrived, t.connection.late = t.connection.set.since(now), t.connection.set.stalls.Late(now)
	return n, err
}

// delivered counts the first delivery of a write by a watch. `slow` means that the watch is a slow consumer. The caller
// holds mu.
func (l *connection) delivered(d delivery, slow bool) {
	l.tally.delivered++
	l.fresh++
	if slow {
		return
	}
	late := l.late + d.ackLate
	if l.run.n > 0 && l.run.stats == d.stats && l.run.after == d.after && l.run.late == late {
		l.run.n++
		return
	}
	l.flush()
	l.run = run{d.stats, d.after, late, 1}
}

// countSamples adds to the samples the deliveries since its previous call. While the read loop runs, only the read loop
// may call it.
func (l *connection) countSamples() {
	if l.fresh > 0 {
		l.set.samples.Delivered(l.fresh)
		l.fresh = 0
	}
}

// flush adds the deliveries in l.run to the histograms, and clears l.run. The caller holds mu.
func (l *connection) flush() {
	r := l.run
	if r.n == 0 {
		return
	}
	l.run = run{}
	r.stats.delivery.RecordN(r.after, r.n)
	r.stats.external.RecordN(r.after-r.late, r.n)
	l.set.exposed.observe(r.after, r.n)
}

// take returns the counts since the previous call, and resets them.
func (l *connection) take() tally {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.flush()
	t := l.tally
	l.tally = tally{}
	return t
}

// over reports whether the connection has ended, so that its counts no longer change.
func (l *connection) over() bool {
	select {
	case <-l.conn.Done():
		return true
	default:
		return false
	}
}

const (
	// dialAgain is the minimum time between a failed dial and the next dial. Until then, attempts that need a new
	// connection fail immediately.
	dialAgain = time.Second
	// ping is the time without data after which the client checks a connection with an HTTP/2 PING, as in client-go.
	ping = 30 * time.Second
	// sharedBuffer is the size of a shared connection's read buffer, in bytes. It is large enough to keep the number
	// of reads low for a hundred watches.
	sharedBuffer = 64 << 10
)

func (w *Watches) dial(ctx context.Context, o h2conn.Options) (*connection, error) {
	l := &connection{set: w}
	open := w.endpoint.DialContext
	o.Ping = ping
	o.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		raw, err := open(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return &timed{raw, l}, nil
	}
	conn, err := w.endpoint.Connect(ctx, o)
	if err != nil {
		return nil, err
	}
	l.conn = conn
	w.connectionsMu.Lock()
	defer w.connectionsMu.Unlock()
	w.connections[l] = struct{}{}
	return l, nil
}

// shared is a set of connections that watches share. It opens a new connection only when no existing one has a free
// stream. It is not safe for concurrent use.
type shared struct {
	set         *Watches
	options     h2conn.Options
	connections []*connection
	failedAt    time.Duration
	failed      error
}

// open sends a request on the first connection with a free stream, or on a new connection. Before each attempt on a
// connection, it calls `handler` with that connection.
func (p *shared) open(ctx context.Context, s *h2conn.Stream, t *h2conn.Template, path []byte, handler func(*connection) h2conn.Handler) error {
	var dialled *connection
	for {
		kept := p.connections[:0]
		opened := false
		for _, l := range p.connections {
			if !opened && !l.full.Load() {
				// Set `full` before the attempt, because a stream that ends in the meantime resets it.
				l.full.Store(true)
				switch err := l.conn.TryOpen(s, t, path, nil, handler(l)); {
				case err == nil:
					opened = true
					l.full.Store(false)
				case !errors.Is(err, h2conn.ErrBusy):
					continue // drop the connection: it accepts no more streams
				}
			}
			kept = append(kept, l)
		}
		clear(p.connections[len(kept):])
		p.connections = kept
		if opened {
			return nil
		}
		if dialled != nil {
			dialled.conn.Close() // otherwise each attempt would leave a connection open
			return fmt.Errorf("the API server allows no stream on a new connection")
		}
		l, err := p.dial(ctx)
		if err != nil {
			return err
		}
		p.connections, dialled = append(p.connections, l), l
	}
}

func (p *shared) dial(ctx context.Context) (*connection, error) {
	if now := p.set.now(); p.failed != nil && now-p.failedAt < dialAgain {
		return nil, p.failed
	}
	l, err := p.set.dial(ctx, p.options)
	p.failedAt, p.failed = p.set.now(), err
	return l, err
}
