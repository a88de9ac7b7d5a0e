package workers

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/stormglass/stormglass/internal/exitcode"
	"github.com/stormglass/stormglass/loadgen/internal/load"
	"github.com/stormglass/stormglass/loadgen/internal/plan"
)

func (f *Fleet) accept() {
	for {
		conn, err := f.listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil { // such as no file descriptors left: a later worker may still join
			time.Sleep(acceptAgain)
			continue
		}
		f.serving.Go(func() { _, _ = f.serve(newLink(conn)) }) // on an error, the peer is not a worker of this run, for example a port scanner
	}
}

// takeConn handles a connection that the Starter made to a worker.
func (f *Fleet) takeConn(conn net.Conn) (joined bool, err error) {
	return f.serve(newLink(tls.Server(conn, f.secrets.tls)))
}

const (
	helloWithin = 10 * time.Second
	// acceptAgain is the pause after the listener could not accept a connection.
	acceptAgain = 100 * time.Millisecond
	// maxPeers is the maximum number of connections whose peers have not yet sent the token of the run. The
	// coordinator closes further connections.
	maxPeers = 1000
)

// serve handles a connection until it ends. `joined` is true if the peer was a worker, even one that was refused.
func (f *Fleet) serve(l *link) (joined bool, err error) {
	defer l.conn.Close()
	f.mu.Lock()
	ending, full := f.ending, len(f.peers) >= maxPeers
	if !full {
		f.peers[l] = true
	}
	f.mu.Unlock()
	switch {
	case ending:
		return false, errOver
	case full:
		return false, errTooManyPeers
	}
	l.until = time.Now().Add(helloWithin)
	first, err := l.receive(largestHello, helloWithin)
	l.until = time.Time{}
	f.mu.Lock()
	delete(f.peers, l)
	f.mu.Unlock()
	if err == nil && first.Hello == nil {
		err = errors.New("not a worker")
	}
	if err != nil {
		return false, err
	}
	m, refusal := f.admit(l, *first.Hello)
	if refusal != "" {
		f.tellRefused(l.conn.RemoteAddr(), refusal)
		_ = l.send(message{Refused: refusal}) // an error means that the worker is gone
		return true, nil                      // true, so that the Starter does not try again
	}
	m.serve()
	return true, nil
}

var (
	errOver         = errors.New("the run is over")
	errTooManyPeers = errors.New("too many connections have sent no token yet")
)

// admit makes the peer a member of the fleet, or returns the reason to refuse it.
func (f *Fleet) admit(l *link, h hello) (*member, string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := len(f.members)
	switch {
	case !f.secrets.holds(h.Token):
		return nil, "the token belongs to another run (take the token file that the coordinator wrote for it)"
	case h.Protocol != protocolVersion:
		return nil, fmt.Sprintf("the worker uses version %d of the protocol, but the coordinator uses version %d (use the same build of loadgen)", h.Protocol, protocolVersion)
	case h.Build != f.build:
		return nil, fmt.Sprintf("the worker is loadgen %s, but the coordinator is loadgen %s (use the same build)", shown(h.Build), f.build)
	case h.Index < 0 || h.Index >= n:
		return nil, fmt.Sprintf("there is no worker %d: the run has %d workers, with the indexes 0 to %d", h.Index, n, n-1)
	case f.members[h.Index] != nil:
		return nil, fmt.Sprintf("worker %d (%s) has already joined, and a restarted worker would repeat requests that were already sent", h.Index, f.members[h.Index].name)
	case f.ending || f.failed != nil:
		return nil, errOver.Error()
	}
	m := newMember(f, l, h)
	f.members[h.Index] = m
	f.notify()
	return m, ""
}

// notify wakes the goroutines that wait for workers to join. The caller holds mu.
func (f *Fleet) notify() {
	close(f.changed)
	f.changed = make(chan struct{})
}

// tell shows the user a line about a worker, unless the same line was shown before.
func (f *Fleet) tell(format string, args ...any) {
	line := shown(fmt.Sprintf(format, args...))
	f.mu.Lock()
	before := f.told[line]
	f.told[line] = true
	f.mu.Unlock()
	if !before {
		f.step("%s", line)
	}
}

// maxRefusals is the maximum number of refusals that the user sees. There is a limit because any host on the network
// can cause refusals.
const maxRefusals = 20

// tellRefused shows the user why a peer was refused, once for each reason. A reason contains text from the peer only if
// the peer has sent the right token.
func (f *Fleet) tellRefused(from net.Addr, refusal string) {
	f.mu.Lock()
	f.last = fmt.Sprintf("a worker at %s was rejected: %s", from, refusal)
	line, first := f.last, !f.told[refusal] && f.refused < maxRefusals
	if first {
		f.told[refusal] = true
		f.refused++
	}
	f.mu.Unlock()
	if first {
		f.step("%s", line)
	}
}

// fail records the error that makes the run end. It has no effect after an earlier error, or if the run is already
// ending.
func (f *Fleet) fail(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.failed == nil && !f.ending {
		f.failed = err
		close(f.failing)
	}
}

// Join waits until all workers have joined. It then sends each worker its share of the loads and nodes, waits until the
// workers have created them, and compares clocks. id is the run's id.
func (f *Fleet) Join(ctx context.Context, p *plan.Plan, t load.Target, id string) error {
	if f == nil {
		return nil
	}
	if err := f.awaitMembers(ctx); err != nil {
		return err
	}
	to, err := targetOf(t, f.started.API)
	if err != nil {
		return exitcode.EnvironmentError(err)
	}
	text, err := p.Resolved()
	if err != nil {
		return err
	}
	w := welcome{Scenario: text, Files: p.Bundle(), Target: to, Nodes: f.nodesSetup()}
	t.Samples.Merge(len(f.members))
	f.mu.Lock()
	f.plan, f.samples = p, t.Samples
	for _, l := range p.Loads {
		if r := newRemote(f, l); r != nil {
			f.loads[l.Name] = r
		}
	}
	f.mu.Unlock()
	err = f.each(func(m *member) error {
		w := w
		w.Share = load.Share{Index: m.index, Of: len(f.members), Run: id}
		return m.welcome(ctx, w)
	})
	if err == nil {
		err = f.each(func(m *member) error { return m.compareClock(ctx) })
	}
	if err != nil {
		return exitcode.EnvironmentError(err)
	}
	f.serving.Go(func() { f.renewTokens(t) })
	f.step("%d workers joined; the offsets of their clocks are known to within %v", len(f.members), f.uncertainty().Round(time.Microsecond))
	return nil
}

func (f *Fleet) awaitMembers(ctx context.Context) error {
	deadline := time.After(f.options.Within)
	for {
		f.mu.Lock()
		missing, changed, last := f.missing(), f.changed, f.last
		f.mu.Unlock()
		if len(missing) == 0 {
			return nil
		}
		select {
		case <-changed:
		case <-f.failing:
			return f.Failed()
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-deadline:
			if last != "" {
				last = "; " + last
			}
			return exitcode.Environmentf("workers %s of %d did not join %s within %v%s (do they run? can they reach this address?)",
				strings.Join(missing, ", "), f.options.Count, f.Where(), f.options.Within, last)
		}
	}
}

// missing returns the indexes of the workers that have not joined yet. The caller holds mu.
func (f *Fleet) missing() (all []string) {
	for i, m := range f.members {
		if m == nil {
			all = append(all, fmt.Sprint(i))
		}
	}
	return all
}
