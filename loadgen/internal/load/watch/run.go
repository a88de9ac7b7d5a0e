package watch

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/stormglass/stormglass/loadgen/internal/apiclient"
	"github.com/stormglass/stormglass/loadgen/internal/apiclient/h2conn"
	"github.com/stormglass/stormglass/loadgen/internal/apiclient/listwatch"
	"github.com/stormglass/stormglass/loadgen/internal/load"
	"github.com/stormglass/stormglass/loadgen/internal/load/arrival"
)

// Run opens the watches and keeps them open until ctx ends. It fails if the list before the first watches fails. At the
// end it records the number of open watches, and closes the ledgers and the connections. Call Drain before ctx ends;
// otherwise deliveries that have not arrived yet count as lost.
func (w *Watches) Run(ctx context.Context) error {
	defer w.closeConnections()
	w.mu.Lock()
	w.running.start = load.StartOf(ctx)
	w.mu.Unlock()
	if w.load.Start != "watchList" {
		rv, err := w.firstList(ctx)
		if err != nil {
			if ctx.Err() != nil {
				w.end()
				return nil
			}
			return err
		}
		w.see(rv)
	}
	// The watches stay open after ctx has ended, until the number of open watches is recorded.
	watching, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	var helpers sync.WaitGroup
	helpers.Go(func() { w.templates.all.Renew(watching) })
	helpers.Go(func() { w.endOverdue(watching) })
	if w.slow > 0 && w.load.Slow.BytesPerSecond > 0 {
		helpers.Go(func() { w.slowDown(watching) })
	}
	openers := 1
	if w.load.Connect == "each" {
		openers = eachOpeners
	}
	for range openers {
		helpers.Go(func() { newOpener(w).run(watching) })
	}
	w.begin(ctx)
	<-ctx.Done()

	for _, l := range *w.ledgers.Load() {
		l.closed.Store(true)
	}
	w.end()
	w.closing.Store(true)
	for i := range w.watchers {
		if t := w.watchers[i].timer.Load(); t != nil {
			t.Stop()
		}
	}
	stop()
	helpers.Wait()
	w.closeConnections()
	return nil
}

// end records the end of the load, and the number of open watches at that time.
func (w *Watches) end() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.gather()
	w.endPhase()
	w.running.end = time.Now()
}

// begin adds each watch to the queue of the openers when its arrival is due.
func (w *Watches) begin(ctx context.Context) {
	start := load.StartOf(ctx)
	for i := range w.watchers {
		at := w.pacer.At(int64(w.share.Number(i)))
		if at == arrival.Never {
			return
		}
		due, ok := w.pause.Await(ctx, start, at)
		if !ok {
			return
		}
		v := &w.watchers[i]
		v.intended = w.since(due)
		if w.load.Start == "watchList" {
			v.machine.State, v.machine.Next = w.state(), w.state()
		}
		w.queue <- v
	}
}

// state returns the kind of request with which a watch reads the current state, for example after a 410.
func (w *Watches) state() listwatch.Question {
	if w.load.Start == "watchList" && !w.listFirst.Load() {
		return listwatch.WatchList
	}
	return listwatch.List
}

func (w *Watches) closeConnections() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.connectionsMu.Lock()
	var connections []*connection
	for l := range w.connections {
		l.conn.Close()
		connections = append(connections, l)
	}
	w.connectionsMu.Unlock()
	for _, l := range connections {
		<-l.conn.Done()
	}
	w.gather()
}

// eachOpeners is the number of opener goroutines if each watch has its own connection. A single opener would not
// suffice, because it waits for the network while it dials. With shared connections there is one opener.
const eachOpeners = 16

// opener opens the streams of watches, one after another.
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
	for ctx.Err() == nil {
		select {
		case v := <-o.set.queue:
			v.attempt(ctx, o)
		case <-ctx.Done():
		}
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
	return p.open(ctx, s, t, o.path, func(l *connection) h2conn.Handler {
		v.connection = l
		return v
	})
}

// openOwn opens a stream on the watch's own connection. It dials a new connection if the old one accepts no more
// streams.
func (o *opener) openOwn(ctx context.Context, v *watcher, s *h2conn.Stream, t *h2conn.Template) error {
	if v.connection != nil {
		err := v.connection.conn.TryOpen(s, t, o.path, nil, v)
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
	if v.connection != nil {
		v.connection.conn.Close() // it may be in a graceful shutdown
	}
	v.connection = l
	return l.conn.TryOpen(s, t, o.path, nil, v)
}

const (
	// lookAfter is the interval at which endOverdue looks for streams past their deadline.
	lookAfter = 5 * time.Second
	giveBack  = 100 * time.Millisecond
)

// endOverdue ends streams whose deadline has passed, until ctx ends. It regularly checks all watches, because a timer
// for each stream would cost more.
func (w *Watches) endOverdue(ctx context.Context) {
	for apiclient.Pause(ctx, lookAfter) {
		w.overdue(w.now())
	}
}

// overdue ends the streams whose deadline has passed.
func (w *Watches) overdue(now time.Duration) {
	for i := range w.watchers {
		v := &w.watchers[i]
		deadline := time.Duration(v.deadline.Load())
		if s := v.current.Load(); s != nil && deadline > 0 && deadline < now {
			s.CancelWith(errOverdue) // no effect if the stream has ended meanwhile
		}
	}
}

// slowDown makes slow watches read at the rate Slow.BytesPerSecond, until ctx ends.
func (w *Watches) slowDown(ctx context.Context) {
	begin, given := w.now(), int64(0)
	for apiclient.Pause(ctx, giveBack) {
		// Compute the number of bytes from the clock, because ticks may be late.
		due := int64(float64(w.load.Slow.BytesPerSecond) * (w.now() - begin).Seconds())
		for i := range w.watchers {
			v := &w.watchers[i]
			if !v.slow {
				continue
			}
			if s := v.current.Load(); s != nil {
				s.Release(int(due - given))
			}
		}
		given = due
	}
}
