package node

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"k8s.io/utils/clock"

	"github.com/stormglass/stormglass/loadgen/internal/apiclient"
)

// workers counts the running goroutines of a fleet. Unlike a sync.WaitGroup, it lets goroutines start at any time until
// close is called.
type workers struct {
	mu     sync.Mutex
	n      int
	closed bool
	idle   chan struct{} // closed when, after a call of close, the last goroutine has ended
}

func newWorkers() *workers { return &workers{idle: make(chan struct{})} }

func (c *workers) run(f func()) bool {
	if !c.join() {
		return false
	}
	go func() {
		defer c.done()
		f()
	}()
	return true
}

// join counts the calling goroutine until it calls done. It returns false if workers is closed.
func (c *workers) join() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return false
	}
	c.n++
	return true
}

func (c *workers) done() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.n--; c.n == 0 && c.closed {
		close(c.idle)
	}
}

// close makes run and join refuse further goroutines. The returned channel is closed when the last goroutine has ended.
func (c *workers) close() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.closed {
		c.closed = true
		if c.n == 0 {
			close(c.idle)
		}
	}
	return c.idle
}

// life is one uninterrupted run of a simulated kubelet, from its start or recovery until it fails or the fleet stops.
// The kubelet's requests and timers end with its life.
type life struct {
	ctx     context.Context
	cancel  context.CancelFunc
	clock   clock.WithDelayedExecution // its AfterFunc calls the function on a new goroutine, as time.AfterFunc does
	workers *workers
	ledger  *ledger
	began   time.Time
	// writes sends pod statuses one after another, as a kubelet does. So while the server stalls, the node has at most
	// one status write in flight.
	writes serial
	// events posts Events one after another, independently of the statuses.
	events serial

	mu  sync.Mutex
	rng *rand.Rand
}

func newLife(parent context.Context, c clock.WithDelayedExecution, workers *workers, ledger *ledger, rng *rand.Rand) *life {
	l := &life{clock: c, workers: workers, ledger: ledger, began: c.Now(), rng: rng}
	l.ctx, l.cancel = context.WithCancel(parent)
	l.writes.life, l.events.life = l, l
	return l
}

func (l *life) over() bool { return l.ctx.Err() != nil }

func (l *life) spawn(f func()) {
	l.workers.run(func() {
		if !l.over() {
			f()
		}
	})
}

// after runs f on another goroutine after d. If d is not positive, f starts immediately and the returned timer is nil.
func (l *life) after(d time.Duration, f func()) clock.Timer {
	if d <= 0 {
		l.spawn(f)
		return nil
	}
	return l.clock.AfterFunc(d, func() { l.run(f) })
}

// run calls f on the calling goroutine, unless the life is over. Timers call run on their own goroutine, because
// another goroutine would wake another thread.
func (l *life) run(f func()) {
	if !l.workers.join() {
		return
	}
	defer l.workers.done()
	if !l.over() {
		f()
	}
}

// wait returns true when d has passed, and false if ctx ends first.
func (l *life) wait(ctx context.Context, d time.Duration) bool {
	t := l.clock.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C():
		return true
	case <-ctx.Done():
		return false
	}
}

// float returns the next pseudo-random number in [0, 1). The seed determines the sequence.
func (l *life) float() float64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.rng.Float64()
}

// backoff returns the wait after a number of failures in a row. The wait grows from `first` to `most`.
func (l *life) backoff(first, most time.Duration, failures int) time.Duration {
	return apiclient.Backoff{First: first, Most: most}.Wait(failures, l.float())
}

// serial runs jobs one after another, on a goroutine that exists only while there are jobs.
type serial struct {
	life *life

	mu      sync.Mutex
	jobs    []func()
	working bool
}

func (s *serial) add(job func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.jobs = append(s.jobs, job)
	if !s.working {
		s.working = true
		s.life.spawn(s.work)
	}
}

func (s *serial) work() {
	for {
		s.mu.Lock()
		if len(s.jobs) == 0 || s.life.over() {
			s.jobs, s.working = nil, false
			s.mu.Unlock()
			return
		}
		job := s.jobs[0]
		s.jobs = s.jobs[1:]
		s.mu.Unlock()
		job()
	}
}
