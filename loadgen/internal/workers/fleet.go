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

// Options say which workers a run has. The zero value: none, the run's process does all.
type Options struct {
	// Count of workers.
	Count int
	// Listen is the address, HOST:PORT, at which workers join; "" is a free port of 127.0.0.1.
	Listen string
	// Advertise is the address, HOST or HOST:PORT, at which workers reach the coordinator; "" is that of Listen.
	Advertise string
	// Starter starts the workers. Nil: somebody else does.
	Starter Starter
	// Carried says that the starter brings the workers' connections: there is no address to join at.
	Carried bool
	// Within bounds the time until all have joined; 0 is five minutes.
	Within time.Duration
}

const defaultWithin = 5 * time.Minute

// Invitation is what workers need to join.
type Invitation struct {
	// Address of the coordinator, HOST:PORT; empty: connections are given to Take.
	Address string
	// Run is the run's id.
	Run string
	// CAFile and TokenFile are arguments of `loadgen worker`; CA and Token are what is in them.
	CAFile, TokenFile string
	CA, Token         string
	// Count of workers. Their indexes are 0 to Count-1.
	Count int
	// Dir takes their logs.
	Dir string
	// Take serves the worker at the other end of a connection until one of them ends it. joined: it was taken as a worker.
	Take func(net.Conn) (joined bool, err error)
	// Tell says in a line what holds up a worker, once.
	Tell func(format string, args ...any)
}

// Started are workers that were started.
type Started struct {
	// Stop ends those that still run, and returns when all have ended.
	Stop func() error
	// API is where they reach the target's API server. Nil: where the coordinator does.
	API *API
}

// API is how an API server is reached.
type API struct {
	Host string
	CA   []byte // PEM
}

// Starter starts the workers of a run.
type Starter interface {
	// Start starts them. ended is told when one ends, whether in order or not.
	Start(ctx context.Context, i Invitation, ended func(index int, why error)) (Started, error)
	// Describe says what Start will make for the run of that id, for the user to confirm.
	Describe(count int, run string) string
}

// Describe says which workers the run of that id will have. Empty: none.
func (o Options) Describe(run string) string {
	switch {
	case o.Count == 0:
		return ""
	case o.Starter == nil:
		return fmt.Sprintf("%d that you start", o.Count)
	}
	return o.Starter.Describe(o.Count, run)
}

// Fleet is the workers of a run. Nil: there are none, and its methods do nothing.
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
	told    map[string]bool // bounds that workers passed, and reasons of refusals, that were shown
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

// Invite writes the workers' credentials to dir and has them started for the run of that id, or says how to.
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

// address is where workers reach the coordinator, HOST:PORT; "" where connections are carried.
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

// Where says where workers join.
func (f *Fleet) Where() string {
	if f.options.Carried {
		return "through the API server"
	}
	return "at " + f.address()
}

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

// answerWithin bounds the answers at the begin of a phase or fault.
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
