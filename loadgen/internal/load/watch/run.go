package watch

import (
	"context"
	"sync"
	"time"

	"github.com/stormglass/stormglass/loadgen/internal/apiclient/listwatch"
	"github.com/stormglass/stormglass/loadgen/internal/load/arrival"
)

// Run opens the watches and holds them until ctx ends. Call Drain before, or what is on its way counts as lost. It
// fails without the state to start from. At the end accounts are closed, the phase gets its number of open
// watches, and connections are closed.
func (w *Watches) Run(ctx context.Context) error {
	defer w.closeConnections()
	if w.load.Start != "watchList" {
		rv, err := w.firstList(ctx)
		if err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return err
		}
		w.see(rv)
	}
	// The watches outlive ctx for as long as it takes to count those open.
	watching, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	var helpers sync.WaitGroup
	helpers.Go(func() { w.templates.all.Renew(watching) })
	helpers.Go(func() { w.endOverdue(watching) })
	if w.slowCount() > 0 && w.load.Slow.BytesPerSecond > 0 {
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
	w.mu.Lock()
	w.gather()
	w.endPhase()
	w.running.end = time.Now()
	w.mu.Unlock()
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

// begin hands the watches to the openers, each at its intended time.
func (w *Watches) begin(ctx context.Context) {
	start := time.Now()
	w.mu.Lock()
	w.running.start = start
	w.mu.Unlock()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for i := range w.watchers {
		at := w.pacer.At(int64(i))
		if at == arrival.Never {
			return
		}
		if wait := time.Until(start.Add(at)); wait > 0 {
			timer.Reset(wait)
			select {
			case <-timer.C:
			case <-ctx.Done():
			}
		}
		if ctx.Err() != nil {
			return
		}
		v := &w.watchers[i]
		v.intended = w.since(start.Add(at))
		if w.load.Start == "watchList" {
			v.machine.State, v.machine.Next = w.state(), w.state()
		}
		w.queue <- v
	}
}

// state returns the question of a watch without a state to go on from.
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
