package watch

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/stormglass/stormglass/loadgen/internal/apiclient/h2conn"
)

// queue holds watches that are to make an attempt, in order. Read loops push
// into it and never wait.
type queue struct {
	mu      sync.Mutex
	waiting []*watcher
	wake    sync.Cond
	closed  bool
}

func newQueue() *queue {
	q := &queue{}
	q.wake.L = &q.mu
	return q
}

func (q *queue) push(v *watcher) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.closed {
		q.waiting = append(q.waiting, v)
		q.wake.Signal()
	}
}

// pop waits for a watch; nil after close.
func (q *queue) pop() *watcher {
	q.mu.Lock()
	defer q.mu.Unlock()
	for len(q.waiting) == 0 && !q.closed {
		q.wake.Wait()
	}
	if q.closed {
		return nil
	}
	v := q.waiting[0]
	q.waiting[0] = nil
	q.waiting = q.waiting[1:]
	return v
}

func (q *queue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed, q.waiting = true, nil
	q.wake.Broadcast()
}

// pushLater pushes a watch after its backoff.
func (w *Watches) pushLater(v *watcher, delay time.Duration) {
	v.timer.Store(time.AfterFunc(delay, func() { w.queue.push(v) }))
}

// Openers at work: one fills shared connections, several make connections of
// the watches' own: each waits for the network.
const eachOpeners = 16

// opener makes attempts, one at a time.
type opener struct {
	set        *Watches
	fast, slow *shared
	path       []byte
}

func newOpener(w *Watches) *opener {
	return &opener{
		set:  w,
		fast: &shared{set: w, options: h2conn.Options{ReadBuffer: sharedBuffer, Queued: true}},
		slow: &shared{set: w, options: h2conn.Options{Queued: true, StreamWindow: uint32(w.load.Slow.Window)}},
	}
}

func (o *opener) run(ctx context.Context) {
	for v := o.set.queue.pop(); v != nil; v = o.set.queue.pop() {
		v.attempt(ctx, o)
	}
}

func (o *opener) open(ctx context.Context, v *watcher, s *h2conn.Stream, t *h2conn.Template) error {
	if o.set.load.Connect == "each" {
		return o.openOwn(ctx, v, s, t)
	}
	p := o.fast
	if v.slow {
		p = o.slow
	}
	return p.open(ctx, s, t, o.path, func(l *lane) h2conn.Handler {
		v.lane = l
		return v
	})
}

// openOwn opens a stream on the watch's own connection, which is made anew
// when it takes no more.
func (o *opener) openOwn(ctx context.Context, v *watcher, s *h2conn.Stream, t *h2conn.Template) error {
	if v.lane != nil {
		err := v.lane.conn.TryOpen(s, t, o.path, nil, v)
		if err == nil || errors.Is(err, h2conn.ErrBusy) {
			return err
		}
	}
	var options h2conn.Options
	if v.slow {
		options.StreamWindow = uint32(o.set.load.Slow.Window)
	}
	l, err := o.set.dial(ctx, options)
	if err != nil {
		return err
	}
	if v.lane != nil {
		v.lane.conn.Close() // it may be going away, slowly
	}
	v.lane = l
	return l.conn.TryOpen(s, t, o.path, nil, v)
}
