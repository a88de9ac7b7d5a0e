package workers

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/stormglass/stormglass/internal/exitcode"
	"github.com/stormglass/stormglass/loadgen/internal/load"
	"github.com/stormglass/stormglass/loadgen/internal/load/kind"
	"github.com/stormglass/stormglass/loadgen/internal/plan"
	"github.com/stormglass/stormglass/loadgen/result"
)

// remote represents, in the coordinator, a load that workers run. Fleet.BeginPhase and Fleet.AddTo do the work of its
// methods BeginPhase and AddTo, for all loads together.
type remote struct {
	load.Plain
	fleet *Fleet
	name  string
	open  *allSaid // closed when all watches are open; nil if the load has no watches
	over  *allSaid // closed when no worker has further arrivals
}

var _ load.Load = (*remote)(nil)

// allSaid closes `done` when every worker has reported an event, such as that its watches are open.
type allSaid struct {
	done chan struct{}

	mu      sync.Mutex
	missing map[int]bool
}

func newAllSaid(n int) *allSaid {
	a := &allSaid{done: make(chan struct{}), missing: map[int]bool{}}
	for i := range n {
		a.missing[i] = true
	}
	return a
}

func (a *allSaid) say(index int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.missing[index] {
		return
	}
	if delete(a.missing, index); len(a.missing) == 0 {
		close(a.done)
	}
}

// newRemote returns the remote of a load, or nil if the load cannot be divided.
func newRemote(f *Fleet, at plan.Load) *remote {
	if !kind.Divides(at.Kind) {
		return nil
	}
	r := &remote{fleet: f, name: at.Name, over: newAllSaid(f.options.Count)}
	if at.OpensWatches() {
		r.open = newAllSaid(f.options.Count)
	}
	return r
}

// Load returns the load with the given name. It returns nil if workers do not divide that load.
func (f *Fleet) Load(name string) load.Load {
	if f == nil {
		return nil
	}
	if r := f.remote(name); r != nil {
		return r
	}
	return nil
}

func (r *remote) opened(index int) {
	if r.open != nil {
		r.open.say(index)
	}
}

// Prepare makes all workers create the objects of their shares.
func (r *remote) Prepare(ctx context.Context) error {
	return r.fleet.callAll(ctx, call{Verb: verbPrepare, Load: r.name})
}

// Run makes all workers start their shares of the load at the same time. It stops all workers when ctx ends or one
// worker fails.
func (r *remote) Run(ctx context.Context) error {
	running, fail := context.WithCancel(ctx)
	defer fail()
	at := r.fleet.startTime()
	answers := make([]<-chan reply, len(r.fleet.members)) // send all calls to run before any call to stop
	for i, m := range r.fleet.members {
		answers[i] = m.ask(call{Verb: verbRun, Load: r.name, At: at})
	}
	var ends sync.WaitGroup
	ends.Go(func() {
		<-running.Done()
		for _, m := range r.fleet.members {
			m.post(message{Call: &call{Verb: verbStop, Load: r.name}})
		}
	})
	err := r.fleet.each(func(m *member) error {
		answer, err := m.await(context.Background(), answers[m.index])
		if answer.Late {
			m.late(answer)
			err = m.whyGone()
		}
		if err != nil {
			fail()
		}
		return err
	})
	fail()
	ends.Wait()
	if err != nil && !errors.As(err, new(*LostError)) {
		return exitcode.EnvironmentError(err)
	}
	return err
}

// BeginPhase does nothing, because Fleet.BeginPhase announces the phase for all loads.
func (r *remote) BeginPhase(string, time.Time) {}

// AllOpen returns a channel that is closed when the watches of all workers are open.
func (r *remote) AllOpen() <-chan struct{} {
	if r.open == nil {
		return nil
	}
	return r.open.done
}

// Over returns a channel that is closed when no further requests of the load become due on any worker.
func (r *remote) Over() <-chan struct{} { return r.over.done }

// Settle waits until the watches of all workers have delivered the load's writes.
func (r *remote) Settle(ctx context.Context) {
	_ = r.fleet.callAll(ctx, call{Verb: verbSettle, Load: r.name}) // the results show missing deliveries
}

// AddTo does nothing, because Fleet.AddTo adds the results of all loads.
func (r *remote) AddTo(*result.Measurements) {}

// Live adds up the values that the workers reported last. P99 is the maximum over all workers.
func (r *remote) Live() (sum load.Live) {
	for _, m := range r.fleet.members {
		l := m.liveOf(r.name)
		sum.Offered += l.Offered
		sum.Achieved += l.Achieved
		sum.P99 = max(sum.P99, l.P99)
		sum.Open += l.Open
		sum.Delivered += l.Delivered
	}
	return sum
}
