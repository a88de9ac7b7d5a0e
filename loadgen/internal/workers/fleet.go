package workers

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/stormglass/stormglass/internal/exitcode"
	"github.com/stormglass/stormglass/loadgen/internal/load"
	"github.com/stormglass/stormglass/loadgen/internal/samples"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

// Most is the largest number of workers.
const Most = 256

// Options say which workers a run has. The zero value: none, the run's process does all.
type Options struct {
	// Count of workers.
	Count int
	// Listen is the address, HOST:PORT, at which workers join; "" is a free port of 127.0.0.1.
	Listen string
	// Advertise is the address, HOST:PORT, at which workers reach the coordinator; "" is that of Listen.
	Advertise string
	// Starter starts the workers. Nil: somebody else does.
	Starter Starter
	// Within bounds the time until all have joined; 0 is five minutes.
	Within time.Duration
}

const defaultWithin = 5 * time.Minute

// Invitation is what workers need to join.
type Invitation struct {
	// Address of the coordinator, HOST:PORT.
	Address string
	// CAFile and TokenFile are arguments of `loadgen worker`; CA and Token are what is in them.
	CAFile, TokenFile string
	CA, Token         string
	// Count of workers. Their indexes are 0 to Count-1.
	Count int
	// Dir takes their logs.
	Dir string
}

// Starter starts the workers of a run.
type Starter interface {
	// Start starts them. ended is told when one ends, whether in order or not. stop ends those that still run and
	// returns when all have ended.
	Start(ctx context.Context, i Invitation, ended func(index int, why error)) (stop func() error, err error)
}

// Fleet is the workers of a run. Nil: there are none, and its methods do nothing.
type Fleet struct {
	options  Options
	build    string
	secrets  *secrets
	listener net.Listener
	step     func(format string, args ...any)
	serving  sync.WaitGroup
	stop     func() error // the workers that were started here
	dir      string       // with the credentials; "": none were written

	mu      sync.Mutex
	members []*member // by index; nil: it has not joined
	changed chan struct{}
	peers   map[*link]bool // that have not been admitted
	refused map[string]bool
	last    string // the reason of the last refusal
	failed  error
	failing chan struct{} // closed with failed
	ending  bool
	begin   time.Time // of the loads that start now
	loads   map[string]*remote
	told    map[string]bool // of lines on saturation; AddTo's

	scenario *scenario.Scenario
	samples  *samples.Recorder
}

// Open listens for workers of a build. It returns nil if there are to be none.
func Open(o Options, build func() string, step func(format string, args ...any)) (*Fleet, error) {
	if o.Count == 0 {
		return nil, nil
	}
	if o.Listen == "" {
		o.Listen = "127.0.0.1:0"
	}
	if o.Within == 0 {
		o.Within = defaultWithin
	}
	s, err := newSecrets()
	if err != nil {
		return nil, exitcode.Environmentf("make the workers' credentials: %w", err)
	}
	l, err := net.Listen("tcp", o.Listen)
	if err != nil {
		return nil, exitcode.Environmentf("listen for workers at %s: %w (name an address of this machine with a free port)", o.Listen, errors.Unwrap(err))
	}
	f := &Fleet{
		options: o, build: build(), secrets: s, listener: tls.NewListener(l, s.tls), step: step, stop: func() error { return nil },
		members: make([]*member, o.Count), changed: make(chan struct{}), peers: map[*link]bool{}, refused: map[string]bool{}, failing: make(chan struct{}),
		loads: map[string]*remote{}, told: map[string]bool{},
	}
	f.serving.Go(f.accept)
	return f, nil
}

// Invite writes the workers' credentials to dir and has them started, or says how to.
func (f *Fleet) Invite(ctx context.Context, dir string) error {
	if f == nil {
		return nil
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return exitcode.EnvironmentError(err)
	}
	f.dir = dir
	i := Invitation{
		Address: f.Address(), CAFile: filepath.Join(dir, "ca.pem"), TokenFile: filepath.Join(dir, "token"),
		CA: string(f.secrets.ca), Token: f.secrets.token, Count: f.options.Count, Dir: dir,
	}
	for file, text := range map[string]string{i.CAFile: i.CA, i.TokenFile: i.Token} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			return exitcode.EnvironmentError(err)
		}
	}
	if f.options.Starter == nil {
		f.step("waiting for %d workers, --index 0 to %d: loadgen worker --coordinator %s --ca %s --token %s --index 0", i.Count, i.Count-1, i.Address, i.CAFile, i.TokenFile)
		return nil
	}
	f.step("starting %d workers", i.Count)
	stop, err := f.options.Starter.Start(ctx, i, f.ended)
	if err != nil {
		return exitcode.Environmentf("start %d workers: %w", i.Count, err)
	}
	f.stop = stop
	return nil
}

// Address is where workers reach the coordinator, HOST:PORT.
func (f *Fleet) Address() string { return cmp.Or(f.options.Advertise, f.listener.Addr().String()) }

// ended takes in that a worker that was started here has ended.
func (f *Fleet) ended(index int, why error) {
	f.mu.Lock()
	m, ending := f.members[index], f.ending
	f.mu.Unlock()
	switch {
	case ending:
	case m != nil:
		m.lose(fmt.Sprintf("was lost: its process ended: %v", why))
	default:
		f.fail(exitcode.Environmentf("worker %d did not start: %w", index, why))
	}
}

func (f *Fleet) accept() {
	for {
		conn, err := f.listener.Accept()
		if err != nil {
			return // closed
		}
		f.serving.Go(func() { f.serve(newLink(conn)) })
	}
}

const helloWithin = 10 * time.Second

// serve talks to a peer until it is gone.
func (f *Fleet) serve(l *link) {
	defer l.conn.Close()
	f.mu.Lock()
	f.peers[l] = true
	ending := f.ending
	f.mu.Unlock()
	if ending {
		return
	}
	first, err := l.receive(largestHello, helloWithin)
	f.mu.Lock()
	delete(f.peers, l)
	f.mu.Unlock()
	if err != nil || first.Hello == nil {
		return // no worker: a port scan, or a worker with another authority
	}
	m, refusal := f.admit(l, *first.Hello)
	if refusal != "" {
		_ = l.send(message{Refused: refusal}) // it may be gone
		f.refuse(fmt.Sprintf("worker %d (%s at %s)", first.Hello.Index, first.Hello.Name, l.conn.RemoteAddr()), refusal)
		return
	}
	m.serve()
}

// admit makes a member of a worker, or says why not.
func (f *Fleet) admit(l *link, h hello) (*member, string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := len(f.members)
	switch {
	case !f.secrets.holds(h.Token):
		return nil, "the token is not that of this run (take the token file that the coordinator wrote for it)"
	case h.Protocol != protocolVersion:
		return nil, fmt.Sprintf("the worker speaks version %d of the protocol, the coordinator version %d (use the same build of loadgen)", h.Protocol, protocolVersion)
	case h.Build != f.build:
		return nil, fmt.Sprintf("the worker is loadgen %s, the coordinator %s (use the same build)", h.Build, f.build)
	case h.Index < 0 || h.Index >= n:
		return nil, fmt.Sprintf("there is no worker %d: the run has %d, from 0 to %d", h.Index, n, n-1)
	case f.members[h.Index] != nil:
		return nil, fmt.Sprintf("worker %d has joined already (%s): one that starts again would repeat what was sent", h.Index, f.members[h.Index].name)
	case f.ending || f.failed != nil:
		return nil, "the run is over"
	}
	m := newMember(f, l, h)
	f.members[h.Index] = m
	f.notify()
	return m, ""
}

// notify wakes who waits for members. The caller holds mu.
func (f *Fleet) notify() {
	close(f.changed)
	f.changed = make(chan struct{})
}

// refuse tells of a refusal, once each.
func (f *Fleet) refuse(who, why string) {
	f.mu.Lock()
	f.last = who + " was refused: " + why
	told := f.refused[who+why]
	f.refused[who+why] = true
	f.mu.Unlock()
	if !told {
		f.step("%s was refused: %s", who, why)
	}
}

// fail ends the run for the first reason that there is.
func (f *Fleet) fail(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.failed == nil && !f.ending {
		f.failed = err
		close(f.failing)
	}
}

// Join waits until all workers are there, gives them their shares of the scenario's loads, and compares clocks.
func (f *Fleet) Join(ctx context.Context, s *scenario.Scenario, t load.Target, id string) error {
	if f == nil {
		return nil
	}
	if err := f.awaitMembers(ctx); err != nil {
		return err
	}
	to, err := targetOf(t)
	if err != nil {
		return exitcode.EnvironmentError(err)
	}
	text, err := s.Resolved()
	if err != nil {
		return err
	}
	w := welcome{Scenario: text, Files: s.Bundle(), Target: to}
	t.Samples.Merge(len(f.members))
	f.mu.Lock()
	f.scenario, f.samples = s, t.Samples
	for _, l := range s.Loads() {
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
	f.serving.Go(func() { f.renewToken(t) })
	f.step("%d workers joined; their clocks are known to %v", len(f.members), f.uncertainty().Round(time.Microsecond))
	return nil
}

func (f *Fleet) awaitMembers(ctx context.Context) error {
	deadline := time.NewTimer(f.options.Within)
	defer deadline.Stop()
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
		case <-deadline.C:
			if last != "" {
				last = "; " + last
			}
			return exitcode.Environmentf("workers %s of %d did not join at %s within %v%s (can they reach that address, and do they run?)",
				strings.Join(missing, ", "), f.options.Count, f.Address(), f.options.Within, last)
		}
	}
}

// missing are the indexes of workers that have not joined. The caller holds mu.
func (f *Fleet) missing() (all []string) {
	for i, m := range f.members {
		if m == nil {
			all = append(all, fmt.Sprint(i))
		}
	}
	return all
}

// each calls fn for all members at once, and returns the first error by index.
func (f *Fleet) each(fn func(*member) error) error {
	errs := make([]error, len(f.members))
	var all sync.WaitGroup
	for i, m := range f.members {
		all.Go(func() { errs[i] = fn(m) })
	}
	all.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// joined are the members so far.
func (f *Fleet) joined() []*member {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(f.members), func(m *member) bool { return m == nil })
}

// remote is the divided load of that name; nil: there is none.
func (f *Fleet) remote(name string) *remote {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.loads[name]
}

// recorder takes the workers' slots; nil before Join.
func (f *Fleet) recorder() *samples.Recorder {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.samples
}

func (f *Fleet) uncertainty() (most time.Duration) {
	for _, m := range f.members {
		most = max(most, m.clockNow().Uncertainty)
	}
	return most
}

// renewEvery is how often a token that is renewed is read again.
const renewEvery = 5 * time.Second

func (f *Fleet) renewToken(t load.Target) {
	if t.Config.BearerTokenFile == "" {
		return
	}
	tick := time.NewTicker(renewEvery)
	defer tick.Stop()
	last := ""
	for {
		select {
		case <-tick.C:
		case <-f.over():
			return
		}
		token, err := tokenOf(t.Config)
		if err != nil || token == last { // it is read again
			continue
		}
		last = token
		for _, m := range f.members {
			m.post(message{Token: token})
		}
	}
}

// over is closed when the first member is gone or the run has ended.
func (f *Fleet) over() <-chan struct{} { return f.members[0].gone }

// lead is how far in the future loads begin: workers must have been told by then.
const lead = 250 * time.Millisecond

// answerWithin bounds the answers at the begin of a phase.
const answerWithin = 30 * time.Second

// startTime is when loads begin that start now: those of one phase at the same time.
func (f *Fleet) startTime() time.Time {
	f.mu.Lock()
	defer f.mu.Unlock()
	if now := time.Now(); f.begin.Sub(now) < lead*4/5 {
		f.begin = now.Add(lead)
	}
	return f.begin
}

// BeginPhase tells the workers of a phase, which began at that time, and compares clocks again.
func (f *Fleet) BeginPhase(name string, at time.Time) {
	if f == nil {
		return
	}
	err := f.each(func(m *member) error {
		ctx, cancel := context.WithTimeoutCause(context.Background(), answerWithin,
			&LostError{Index: m.index, Name: m.name, Why: fmt.Sprintf("did not answer within %v", answerWithin)})
		defer cancel()
		if _, err := m.call(ctx, call{Verb: verbPhase, Name: name, At: at}); err != nil {
			return err
		}
		return m.compareClock(ctx)
	})
	if err != nil {
		f.fail(err)
	}
}

// Watch returns why a worker was lost, or nil when ctx ends.
func (f *Fleet) Watch(ctx context.Context) error {
	if f == nil {
		<-ctx.Done()
		return nil
	}
	select {
	case <-f.failing:
		return f.Failed()
	case <-ctx.Done():
		return nil
	}
}

// Failed is why the run could not go on with its workers; nil: it could.
func (f *Fleet) Failed() error {
	if f == nil {
		return nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.failed
}

// endWithin bounds the end of the workers.
const endWithin = 15 * time.Second

// End takes the last results and ends the workers.
func (f *Fleet) End() {
	if f == nil {
		return
	}
	f.mu.Lock()
	f.ending = true
	f.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), endWithin)
	defer cancel()
	_ = f.each(func(m *member) error { // what a lost one measured last is known
		_, err := m.call(ctx, call{Verb: verbEnd})
		m.leave()
		return err
	})
}

// Close ends the connections and the workers that were started here, and removes their credentials.
func (f *Fleet) Close() error {
	if f == nil {
		return nil
	}
	f.mu.Lock()
	f.ending = true
	for l := range f.peers {
		_ = l.conn.Close() // it may be closed
	}
	f.mu.Unlock()
	_ = f.listener.Close() // a second time: it is closed
	for _, m := range f.joined() {
		m.leave()
	}
	err := f.stop()
	f.serving.Wait()
	if f.dir != "" {
		for _, name := range []string{"ca.pem", "token"} {
			if removed := os.Remove(filepath.Join(f.dir, name)); !errors.Is(removed, os.ErrNotExist) {
				err = errors.Join(err, removed)
			}
		}
	}
	return exitcode.EnvironmentError(err)
}
