package workers

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/stormglass/stormglass/internal/exitcode"
	"github.com/stormglass/stormglass/loadgen/internal/load"
	"github.com/stormglass/stormglass/loadgen/internal/node"
	"github.com/stormglass/stormglass/loadgen/internal/samples"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

// Most is the largest number of workers.
const Most = 256

// Options configure a run's workers. The zero value: no workers, the run's process does all.
type Options struct {
	// Count of workers.
	Count int
	// Listen is the address, HOST:PORT, at which workers join; "" is a free port of 127.0.0.1.
	Listen string
	// Advertise is the address, HOST or HOST:PORT, at which workers reach the coordinator; "" is the address of Listen.
	Advertise string
	// Starter starts the workers. Nil: they are started separately.
	Starter Starter
	// Carried says that the starter brings the workers' connections: there is no address to join at.
	Carried bool
	// Within bounds the time until all have joined; 0 is five minutes.
	Within time.Duration
}

const defaultWithin = 5 * time.Minute

// Invitation holds the data that workers need to join.
type Invitation struct {
	// Address of the coordinator, HOST:PORT; empty: connections are given to Take.
	Address string
	// Run is the run's id.
	Run string
	// CAFile and TokenFile are arguments of `loadgen worker`; CA and Token are their contents.
	CAFile, TokenFile string
	CA, Token         string
	// Count of workers. Their indexes are 0 to Count-1.
	Count int
	// Dir is the directory for their logs.
	Dir string
	// Take serves the worker at the other end of a connection until one side ends it. joined: the peer was accepted as
	// a worker.
	Take func(net.Conn) (joined bool, err error)
	// Tell reports in one line, once, what delays a worker.
	Tell func(format string, args ...any)
}

// Started describes workers that were started.
type Started struct {
	// Stop ends the workers that still run, and returns when all have ended.
	Stop func() error
	// API is how the workers reach the target's API server. Nil: as the coordinator does.
	API *API
}

// API describes how to reach an API server.
type API struct {
	Host string
	CA   []byte // PEM
}

// Starter starts the workers of a run.
type Starter interface {
	// Start starts them. ended is called when one ends, in order or not.
	Start(ctx context.Context, i Invitation, ended func(index int, why error)) (Started, error)
	// Describe describes what Start will create for the run with that id, for the user to confirm.
	Describe(count int, run string) string
}

// Describe describes the workers of the run with that id. It returns "" without workers.
func (o Options) Describe(run string) string {
	switch {
	case o.Count == 0:
		return ""
	case o.Starter == nil:
		return fmt.Sprintf("%d that you start", o.Count)
	}
	return o.Starter.Describe(o.Count, run)
}

// Fleet is the workers of a run. A nil Fleet has no workers, and its methods do nothing.
type Fleet struct {
	options  Options
	build    string
	secrets  *secrets
	listener net.Listener // nil: connections are carried
	step     func(format string, args ...any)
	serving  sync.WaitGroup
	started  Started // of the workers that were started here
	dir      string  // with the credentials; "": none were written

	mu      sync.Mutex
	members []*member // by index; nil: it has not joined
	changed chan struct{}
	peers   map[*link]bool  // that have not been admitted
	told    map[string]bool // bounds that workers passed, and reasons of refusals, that were reported
	refused int             // of these reasons
	last    string          // the newest refusal, in a line
	failed  error
	failing chan struct{} // closed with failed
	ending  bool
	begin   time.Time // of the loads that start now
	loads   map[string]*remote

	scenario *scenario.Scenario
	samples  *samples.Recorder
	nodes    *node.Config // that workers divide; nil: they do not
}

// Open listens for workers of a build. It returns nil if the options have no workers.
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
	f := &Fleet{
		options: o, build: build(), secrets: s, step: step, started: Started{Stop: func() error { return nil }},
		members: make([]*member, o.Count), changed: make(chan struct{}), peers: map[*link]bool{}, told: map[string]bool{}, failing: make(chan struct{}),
		loads: map[string]*remote{},
	}
	if o.Carried {
		return f, nil
	}
	l, err := net.Listen("tcp", o.Listen)
	if err != nil {
		return nil, exitcode.Environmentf("listen for workers at %s: %w (name an address of this machine with a free port)", o.Listen, errors.Unwrap(err))
	}
	f.listener = tls.NewListener(l, s.tls)
	f.serving.Go(f.accept)
	return f, nil
}

// Invite writes the workers' credentials to dir and starts the workers for the run with that id, or prints how to start
// them.
func (f *Fleet) Invite(ctx context.Context, dir, run string) error {
	if f == nil {
		return nil
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return exitcode.EnvironmentError(err)
	}
	f.dir = dir
	i := Invitation{
		Address: f.address(), Run: run, CAFile: filepath.Join(dir, "ca.pem"), TokenFile: filepath.Join(dir, "token"),
		CA: string(f.secrets.ca), Token: f.secrets.token, Count: f.options.Count, Dir: dir,
		Take: f.takeConn, Tell: f.tell,
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
	f.step("starting workers: %s", f.options.Describe(run))
	started, err := f.options.Starter.Start(ctx, i, f.ended)
	if err != nil {
		return exitcode.Environmentf("start %d workers: %w", i.Count, err)
	}
	f.started = started
	return nil
}

// address returns where workers reach the coordinator, HOST:PORT, or "" if connections are carried.
func (f *Fleet) address() string {
	if f.options.Carried {
		return ""
	}
	own := f.listener.Addr().String()
	if host := f.options.Advertise; host != "" {
		if _, _, err := net.SplitHostPort(host); err == nil {
			return host
		}
		_, port, _ := net.SplitHostPort(own) // it has one
		return net.JoinHostPort(host, port)
	}
	return own
}

// Where describes where workers join.
func (f *Fleet) Where() string {
	if f.options.Carried {
		return "through the API server"
	}
	return "at " + f.address()
}

// ended notes that a worker that was started here has ended.
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

// each calls fn for all members concurrently, and returns the first error by index.
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

// joined returns the members so far.
func (f *Fleet) joined() []*member {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(f.members), func(m *member) bool { return m == nil })
}

// remote returns the divided load of that name, or nil.
func (f *Fleet) remote(name string) *remote {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.loads[name]
}

// recorder returns the recorder of the workers' slots, or nil before Join.
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

// renewEvery is how often a renewed token is read again.
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

// over returns a channel that is closed when the first member is gone or the run has ended.
func (f *Fleet) over() <-chan struct{} { return f.members[0].gone }

// lead is how far in the future loads begin. The workers must learn of the start within it.
const lead = 250 * time.Millisecond

// answerWithin bounds the wait for answers at the start of a phase or fault.
const answerWithin = 30 * time.Second

// startTime returns when loads begin that start now. Loads of one phase begin at the same time.
func (f *Fleet) startTime() time.Time {
	f.mu.Lock()
	defer f.mu.Unlock()
	if now := time.Now(); f.begin.Sub(now) < lead*4/5 {
		f.begin = now.Add(lead)
	}
	return f.begin
}

// BeginPhase tells the workers that a phase began at that time, and compares clocks again.
func (f *Fleet) BeginPhase(name string, at time.Time) {
	if f == nil {
		return
	}
	err := f.each(func(m *member) error {
		ctx, cancel := m.bounded()
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

// Failed returns why the run could not continue with its workers, or nil.
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

// End collects the last results and ends the workers.
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

// Close closes the connections, stops the workers that were started here, and removes their credentials.
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
	if f.listener != nil {
		_ = f.listener.Close() // a second time: it is closed
	}
	for _, m := range f.joined() {
		m.leave()
	}
	err := f.started.Stop()
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
