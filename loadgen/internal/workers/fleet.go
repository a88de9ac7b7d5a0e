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
	"github.com/stormglass/stormglass/loadgen/internal/plan"
	"github.com/stormglass/stormglass/loadgen/internal/samples"
)

// Most is the maximum number of workers of a run.
const Most = 256

// Options configures the workers of a run. The zero value means no workers: the run's own process generates all load.
type Options struct {
	// Count is the number of workers.
	Count int
	// Listen is the address, HOST:PORT, on which the coordinator listens for workers. "" means a free port of
	// 127.0.0.1.
	Listen string
	// Advertise is the address, HOST or HOST:PORT, at which workers reach the coordinator. "" means the same address as
	// Listen.
	Advertise string
	// Starter starts the workers. If it is nil, the user starts them with `loadgen worker`.
	Starter Starter
	// Carried means that the Starter connects to the workers and passes the connections to the coordinator, which then
	// does not listen.
	Carried bool
	// Within is the time limit for all workers to join the run. 0 means five minutes.
	Within time.Duration
}

const defaultWithin = 5 * time.Minute

// Invitation holds what workers need to join a run.
type Invitation struct {
	// Address is the coordinator's address, HOST:PORT. It is empty if the Starter makes the connections and passes them
	// to Take.
	Address string
	// Run is the run's id.
	Run string
	// CAFile and TokenFile are the paths of the files for the flags --ca and --token of `loadgen worker`. CA and Token are
	// their contents.
	CAFile, TokenFile string
	CA, Token         string
	// Count is the number of workers. Their indexes are 0 to Count-1.
	Count int
	// Dir is the directory for the workers' logs.
	Dir string
	// Take serves the worker at the other end of conn until either side closes the connection. `joined` reports whether
	// the peer is a worker, even one that the coordinator refused.
	Take func(net.Conn) (joined bool, err error)
	// Tell shows the user a line about something that delays a worker. It ignores repeated lines.
	Tell func(format string, args ...any)
}

// Started describes the workers that a Starter has started.
type Started struct {
	// Stop ends the workers that are still running, and returns when all have ended.
	Stop func() error
	// API is the API server's address and CA for the workers. Nil means that they use the coordinator's.
	API *API
}

// API is the address of an API server and the CA that signed its certificate.
type API struct {
	Host string
	CA   []byte // certificate of the CA, in PEM
}

// Starter starts the workers of a run.
type Starter interface {
	// Start starts the workers of an Invitation. It calls ended whenever a worker ends, whether normally or not.
	Start(ctx context.Context, i Invitation, ended func(index int, why error)) (Started, error)
	// Describe returns a text about what Start will create for the run with the ID `run`. The user must confirm this text.
	Describe(count int, run string) string
}

// Describe returns a text for the user about the workers of the run with the ID `run`. It returns "" if o.Count is 0.
func (o Options) Describe(run string) string {
	switch {
	case o.Count == 0:
		return ""
	case o.Starter == nil:
		return fmt.Sprintf("%d that you start", o.Count)
	}
	return o.Starter.Describe(o.Count, run)
}

// Fleet represents, in the coordinator, all workers of a run. A nil *Fleet means that there are no workers; its methods
// then do nothing.
type Fleet struct {
	options  Options
	build    string
	secrets  *secrets
	listener net.Listener // nil if the Starter makes the connections
	step     func(format string, args ...any)
	serving  sync.WaitGroup
	started  Started // the workers that the Starter started
	dir      string  // directory of the credentials; "" if none were written

	mu      sync.Mutex
	members []*member // by index; nil for a worker that has not joined
	changed chan struct{}
	peers   map[*link]bool  // connections from which no valid hello has arrived yet
	told    map[string]bool // lines and refusal reasons that the user has seen
	refused int             // number of refusal reasons in `told`
	last    string          // the line about the latest refusal
	failed  error
	failing chan struct{} // closed when failed is set
	ending  bool
	begin   time.Time // start time of the loads that are being started
	loads   map[string]*remote

	plan    *plan.Plan
	samples *samples.Recorder
	nodes   *node.Config // configuration of the nodes that the workers divide; nil if workers run no nodes
}

// Open creates the Fleet and listens for workers, which must have the same build as the coordinator. `step` shows the
// user a line. Open returns nil if o.Count is 0.
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
		return nil, exitcode.Environmentf("create the workers' credentials: %w", err)
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

// Invite writes the workers' credentials to dir. Then it starts the workers for the run with the ID `run`. Without a
// Starter, it instead shows the user how to start them.
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
		f.step("waiting for %d workers; start each with a different --index from 0 to %d: loadgen worker --coordinator %s --ca %s --token %s --index 0", i.Count, i.Count-1, i.Address, i.CAFile, i.TokenFile)
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

// address returns the address at which workers reach the coordinator, HOST:PORT, or "" if the Starter makes the
// connections.
func (f *Fleet) address() string {
	if f.options.Carried {
		return ""
	}
	own := f.listener.Addr().String()
	if host := f.options.Advertise; host != "" {
		if _, _, err := net.SplitHostPort(host); err == nil {
			return host
		}
		_, port, _ := net.SplitHostPort(own) // own always has a port
		return net.JoinHostPort(host, port)
	}
	return own
}

// Where returns how workers join, for use in a message: "through the API server" or "at HOST:PORT".
func (f *Fleet) Where() string {
	if f.options.Carried {
		return "through the API server"
	}
	return "at " + f.address()
}

// ended handles the end of a worker process that the Starter started. Unless the run is ending, the run fails.
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

// each calls fn concurrently for all members and waits. It returns the error of the member with the lowest index.
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

// callAll sends a call to all members and waits for their replies.
func (f *Fleet) callAll(ctx context.Context, c call) error {
	return f.each(func(m *member) error {
		_, err := m.call(ctx, c)
		return err
	})
}

func (f *Fleet) joined() []*member {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(f.members), func(m *member) bool { return m == nil })
}

// remote returns the load with the given name, or nil if workers do not divide that load.
func (f *Fleet) remote(name string) *remote {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.loads[name]
}

// recorder returns the recorder that stores the workers' samples, or nil before Join.
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

// renewEvery is the interval at which the coordinator looks for renewed tokens.
const renewEvery = 5 * time.Second

// renewTokens sends the workers renewed tokens for their loads and nodes, until the run ends.
func (f *Fleet) renewTokens(t load.Target) {
	var nodeTokens renewedTokens // nil if the nodes have no tokens
	if f.nodes != nil {
		nodeTokens, _ = f.nodes.Identities.(renewedTokens)
	}
	tick := time.NewTicker(renewEvery)
	defer tick.Stop()
	for last := ""; ; {
		select {
		case <-tick.C:
		case <-f.over():
			return
		}
		if t.Config.BearerTokenFile != "" {
			if token, err := tokenOf(t.Config); err == nil && token != last { // after an error, the next tick tries again
				last = token
				for _, m := range f.members {
					m.post(message{Token: token})
				}
			}
		}
		if nodeTokens != nil {
			for _, m := range f.members {
				if renewed := m.renewed(nodeTokens); len(renewed) > 0 {
					m.post(message{NodeTokens: renewed})
				}
			}
		}
	}
}

// over returns a channel that is closed at the end of the run, when member 0 is gone.
func (f *Fleet) over() <-chan struct{} { return f.members[0].gone }

// lead is the time between the decision to start a load and its start. All workers must receive the start time within
// this time.
const lead = 250 * time.Millisecond

// answerWithin is the maximum wait for the workers' replies at the start of a phase or a fault.
const answerWithin = 30 * time.Second

// startTime returns the start time that the coordinator announces to the workers for a load that it starts now. Loads
// that start almost together get the same start time.
func (f *Fleet) startTime() time.Time {
	f.mu.Lock()
	defer f.mu.Unlock()
	if now := time.Now(); f.begin.Sub(now) < lead*4/5 {
		f.begin = now.Add(lead)
	}
	return f.begin
}

// BeginPhase tells the workers that the phase `name` began at the time `at`, and compares clocks again.
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

// Watch waits until a worker is lost, and returns the error. It returns nil if ctx ends first.
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

// Failed returns the error that forces the run to end, such as a lost worker. It returns nil if the run may continue.
func (f *Fleet) Failed() error {
	if f == nil {
		return nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.failed
}

// endWithin is the time limit for the last replies of the workers at the end of a run.
const endWithin = 15 * time.Second

// End collects the last results of the workers and tells the workers to end.
func (f *Fleet) End() {
	if f == nil {
		return
	}
	f.mu.Lock()
	f.ending = true
	f.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), endWithin)
	defer cancel()
	_ = f.each(func(m *member) error { // the last results of a lost member were stored when they arrived
		_, err := m.call(ctx, call{Verb: verbEnd})
		m.leave()
		return err
	})
}

// Close closes all connections, stops the workers that the Starter has started, and removes the credentials that Invite
// wrote.
func (f *Fleet) Close() error {
	if f == nil {
		return nil
	}
	f.mu.Lock()
	f.ending = true
	for l := range f.peers {
		_ = l.conn.Close() // it may be closed already
	}
	f.mu.Unlock()
	if f.listener != nil {
		_ = f.listener.Close() // it may be closed already
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
