package workers

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/stormglass/stormglass/internal/exitcode"
	"github.com/stormglass/stormglass/loadgen/internal/load"
	"github.com/stormglass/stormglass/loadgen/internal/node"
)

const (
	// lostAfter is how long a peer may stay silent before it counts as lost.
	lostAfter = 15 * time.Second
	// aliveEvery is the interval at which coordinator and workers send heartbeats.
	aliveEvery = time.Second
	// maxPosted is the maximum number of queued messages for one worker.
	maxPosted = 1 << 14
)

// LostError reports that a worker was lost, was too late or has failed. The run then has no verdict.
type LostError struct {
	Index int
	Name  string
	Why   string
}

// Error returns the error in one line.
func (e *LostError) Error() string { return fmt.Sprintf("worker %d (%s) %s", e.Index, e.Name, e.Why) }

// Unjudged reports that the run has no verdict, because part of its load was missing. It is always true.
func (e *LostError) Unjudged() bool { return true }

// member represents, in the coordinator, one worker.
type member struct {
	fleet *Fleet
	index int
	name  string
	link  *link
	out   chan message
	gone  chan struct{} // closed when the worker is lost or has left
	once  sync.Once
	ctx   context.Context // canceled when gone is closed
	end   context.CancelFunc

	mu      sync.Mutex
	lost    *LostError // nil unless the worker was lost
	calls   map[int64]chan reply
	next    int64
	clock   clock
	live    map[string]load.Live
	nodes   node.Live
	tokens  map[string]string // the tokens of nodes as last sent to the worker
	asks    map[string]int    // number of requests for credentials by node, counted since the time `since`
	since   time.Time         // start of the hour to which asks refers
	results results
	metrics [][]byte
	ready   chan reply // receives the reply to the welcome
}

func newMember(f *Fleet, l *link, h hello) *member {
	m := &member{
		fleet: f, index: h.Index, name: shown(h.Name), link: l, out: make(chan message, maxPosted), gone: make(chan struct{}),
		next: 1, ready: make(chan reply, 1), tokens: map[string]string{}, asks: map[string]int{},
	}
	m.calls = map[int64]chan reply{0: m.ready}
	m.ctx, m.end = context.WithCancel(context.Background())
	return m
}

// serve handles the worker's messages until the worker is gone.
func (m *member) serve() {
	var sending sync.WaitGroup
	defer sending.Wait()
	sending.Go(m.sendAll)
	for {
		got, err := m.link.receive(largestOfWorker, lostAfter)
		if err != nil {
			switch {
			case isTimeout(err):
				m.lose(fmt.Sprintf("was lost: no message from it for %v", lostAfter))
			case errors.Is(err, io.EOF):
				m.lose("was lost: it closed the connection")
			default:
				m.lose("was lost: " + err.Error())
			}
			return
		}
		m.take(got, time.Now())
	}
}

// sendAll sends the queued messages, and a heartbeat every aliveEvery.
func (m *member) sendAll() {
	tick := time.NewTicker(aliveEvery)
	defer tick.Stop()
	for {
		var next message
		select {
		case next = <-m.out:
		case <-tick.C:
		case <-m.gone:
			return
		}
		if err := m.link.send(next); err != nil {
			m.lose("was lost: " + err.Error())
			return
		}
	}
}

// post queues a message without blocking. If the queue is full, the worker counts as lost.
func (m *member) post(next message) {
	select {
	case m.out <- next:
	case <-m.gone:
	default:
		m.lose(fmt.Sprintf("was lost: it does not read the coordinator's messages (%d messages are waiting)", maxPosted))
	}
}

// lose disconnects the worker. Unless the run is ending, it marks the worker as lost and fails the run. Only the first
// call of lose or leave has an effect.
func (m *member) lose(why string) {
	err := &LostError{Index: m.index, Name: m.name, Why: shown(why)}
	m.fleet.mu.Lock()
	ending := m.fleet.ending
	m.fleet.mu.Unlock()
	m.once.Do(func() {
		if !ending {
			m.mu.Lock()
			m.lost = err
			m.mu.Unlock()
			m.fleet.fail(err)
		}
		m.close()
	})
}

// leave closes the connection to a worker that was not lost.
func (m *member) leave() { m.once.Do(m.close) }

func (m *member) close() {
	close(m.gone)
	m.end()
	_ = m.link.conn.Close() // it may be closed
	if r := m.fleet.recorder(); r != nil {
		if err := r.End(m.index); err != nil {
			m.fleet.fail(exitcode.EnvironmentError(err))
		}
	}
}

// whyGone returns the error for a call to a worker that has left or was lost.
func (m *member) whyGone() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.lost != nil {
		return m.lost
	}
	return fmt.Errorf("worker %d has left", m.index)
}

// take processes a message that arrived from the worker at the time `at`.
func (m *member) take(got message, at time.Time) {
	switch {
	case got.Reply != nil:
		got.Reply.at = at
		m.takeReply(*got.Reply)
	case got.Slot != nil:
		r := m.fleet.recorder()
		if r == nil {
			m.lose("has failed: it sent a measurement before the run began")
			return
		}
		if err := r.Add(m.index, *got.Slot); err != nil {
			m.lose("has failed: " + err.Error())
		}
	case got.Live != nil:
		m.mu.Lock()
		m.live = got.Live
		m.mu.Unlock()
	case got.Nodes != nil:
		m.mu.Lock()
		m.nodes = *got.Nodes
		m.mu.Unlock()
	case got.Step != "":
		m.fleet.step("worker %d (%s): %s", m.index, m.name, shown(got.Step))
	case got.Ask != nil:
		m.fleet.serving.Go(func() { m.give(*got.Ask) })
	case got.Opened != "":
		if r := m.fleet.remote(got.Opened); r != nil {
			r.opened(m.index)
		}
	case got.Over != "":
		if r := m.fleet.remote(got.Over); r != nil {
			r.over.say(m.index)
		}
	case len(got.Acks) > 0:
		for _, other := range m.fleet.joined() {
			if other != m {
				other.post(message{Acks: got.Acks})
			}
		}
	}
}

func (m *member) takeReply(r reply) {
	r.Error = shown(r.Error)
	if err := r.Results.checkTally(); err != nil {
		m.lose("has failed: invalid durations of its nodes' Lease renewals: " + err.Error())
		return
	}
	m.mu.Lock()
	waiting := m.calls[r.ID]
	delete(m.calls, r.ID)
	if r.Results != nil {
		r.Results.clean()
		m.results = *r.Results
	}
	if r.Metrics != nil {
		m.metrics = r.Metrics
	}
	m.mu.Unlock()
	if waiting != nil {
		waiting <- r
	}
}

// call sends a call to the worker and waits for its reply.
func (m *member) call(ctx context.Context, c call) (reply, error) { return m.await(ctx, m.ask(c)) }

// ask sends a call and returns a channel for its reply. Pass the channel to `await`.
func (m *member) ask(c call) <-chan reply {
	answer := make(chan reply, 1)
	m.mu.Lock()
	c.ID = m.next
	m.next++
	m.calls[c.ID] = answer
	m.mu.Unlock()
	m.post(message{Call: &c})
	return answer
}

func (m *member) await(ctx context.Context, answer <-chan reply) (reply, error) {
	select {
	case r := <-answer:
		if r.Error != "" {
			return r, fmt.Errorf("worker %d (%s): %s", m.index, m.name, r.Error)
		}
		return r, nil
	case <-m.gone:
		return reply{}, m.whyGone()
	case <-ctx.Done():
		return reply{}, context.Cause(ctx)
	}
}

// bounded returns a context for calls that the worker answers immediately. If the worker takes longer than
// answerWithin, the context ends with a LostError as cause.
func (m *member) bounded() (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(context.Background(), answerWithin,
		&LostError{Index: m.index, Name: m.name, Why: fmt.Sprintf("did not answer within %v", answerWithin)})
}

// welcome sends the worker its share (its part of the loads and nodes), and waits until the worker has created them.
func (m *member) welcome(ctx context.Context, w welcome) error {
	m.post(message{Welcome: &w})
	_, err := m.await(ctx, m.ready)
	return err
}

// compareClock measures the offset of the worker's clock and sends it to the worker. It returns a LostError if the
// offset is too large.
func (m *member) compareClock(ctx context.Context) error {
	var all []exchange
	for range exchanges {
		asked := time.Now()
		r, err := m.call(ctx, call{Verb: verbTime})
		if err != nil {
			return err
		}
		all = append(all, exchange{asked: asked, answered: r.at, theirs: r.Time})
	}
	c := compareClocks(all)
	if err := c.check(); err != nil {
		return &LostError{Index: m.index, Name: m.name, Why: "was rejected: " + err.Error()}
	}
	m.mu.Lock()
	m.clock = c
	m.mu.Unlock()
	m.post(message{Clock: &c})
	return nil
}

func (m *member) clockNow() clock {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.clock
}

func (m *member) liveOf(name string) load.Live {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.live[name]
}
