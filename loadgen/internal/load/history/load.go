package history

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/stormglass/stormglass/loadgen/internal/apiclient"
	"github.com/stormglass/stormglass/loadgen/internal/apiclient/listwatch"
	"github.com/stormglass/stormglass/loadgen/internal/load"
	"github.com/stormglass/stormglass/loadgen/internal/load/history/check"
	"github.com/stormglass/stormglass/loadgen/internal/samples"
	"github.com/stormglass/stormglass/loadgen/internal/stall"
	"github.com/stormglass/stormglass/loadgen/result"
)

// Load is a load of kind "history".
type Load struct {
	load.Plain
	config    Config
	to        *apiclient.Endpoint
	sent      prometheus.Counter // counts the requests sent, except watches
	registers *registers
	seed      int64
	record    recorder
	requests  *samples.Requests
	streams   *samples.Streams
	stalls    *stall.Meter
	pause     *load.Pause
	first     []check.Register // initial states of the registers; set by Prepare
	events    atomic.Int64     // number of entries in the logs of all watchers

	mu           sync.Mutex
	watchers     []*watcher // the watchers; set by Run
	watching     sync.WaitGroup
	stopWatching context.CancelFunc
	ran          bool // whether Run has returned
	rate, well   load.Rate
	finished     *result.History
}

var _ load.Load = (*Load)(nil)

// New returns a load of kind "history". It sends no request.
func New(t load.Target, c Config) (*Load, error) {
	c, err := c.withDefaults()
	if err != nil {
		return nil, err
	}
	l := &Load{
		config: c, seed: t.Seed, record: recorder{base: time.Now()},
		requests: t.Samples.Requests(c.Name), streams: t.Samples.Streams(c.Name), stalls: t.Stalls, pause: t.Pause,
	}
	l.sent = prometheus.NewCounter(prometheus.CounterOpts{
		Name: "stormglass_history_requests_total", Help: "Requests of loads of kind history, without watches.",
	})
	if err := load.Register(t.Registerer, &l.sent); err != nil {
		return nil, err
	}
	if l.to, err = apiclient.New(t.Config, &apiclient.Roots{}); err != nil {
		return nil, fmt.Errorf("load %s: %w", c.Name, err)
	}
	if _, err = l.to.Headers(); err != nil {
		return nil, fmt.Errorf("load %s: %w", c.Name, err)
	}
	if l.registers, err = newRegisters(t, c); err != nil {
		return nil, fmt.Errorf("load %s: %w", c.Name, err)
	}
	return l, nil
}

// Prepare creates the registers. If registers of an earlier run exist, it resets them.
func (l *Load) Prepare(ctx context.Context) error {
	conn := connection{to: l.to, sent: l.sent}
	defer conn.close()
	l.first = nil
	for i, name := range l.registers.names {
		what := fmt.Sprintf("configmaps %q", name)
		verb := "create"
		answer, err := conn.ask(ctx, http.MethodPost, l.registers.collection, l.registers.body(i, 0, 0))
		if err == nil && answer.Status == http.StatusConflict {
			verb = "update"
			answer, err = conn.ask(ctx, http.MethodPut, l.registers.path(i), l.registers.body(i, 0, 0))
		}
		if err != nil {
			return fmt.Errorf("%s %s: %w", verb, what, err)
		}
		made := check.Operation{Kind: check.Write}
		if outcome(made.Kind, answer, nil) != check.OK {
			return failed(verb, what, answer)
		}
		if readAnswer(&made, answer.Body); made.Outcome != check.OK {
			return fmt.Errorf("%s %s: the response is not a ConfigMap with a numeric resourceVersion", verb, what)
		}
		l.first = append(l.first, check.Register{Name: name, Version: made.Version, Value: made.Value})
	}
	return nil
}

// Run writes, reads and watches the registers until ctx ends. It returns when the last operation has ended. The
// watchers continue until Finish or Close. Run fails if it cannot list the registers, because the watches begin at the
// version of that list.
func (l *Load) Run(ctx context.Context) error {
	if l.first == nil {
		return fmt.Errorf("load %s was not prepared before the run", l.config.Name)
	}
	l.mu.Lock()
	l.record.base = time.Now()
	l.mu.Unlock()
	start, err := l.begin(ctx)
	if err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return err
	}
	watching, stop := context.WithCancel(context.WithoutCancel(ctx))
	l.mu.Lock()
	l.stopWatching = stop
	for i := range l.config.Watchers {
		w := newWatcher(l, i, start)
		l.watchers = append(l.watchers, w)
		l.watching.Go(func() { w.run(watching) })
	}
	l.mu.Unlock()
	var clients sync.WaitGroup
	for i := range l.config.Clients {
		clients.Go(func() { newClient(l, i).run(ctx) })
	}
	clients.Wait()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ran = true
	return nil
}

// beginWithin is the time limit for the list at the start. It allows a control plane to recover from a fault of an
// earlier phase.
const beginWithin = time.Minute

// begin lists the registers, with retries, and returns the version at which the watches begin.
func (l *Load) begin(ctx context.Context) (uint64, error) {
	conn := connection{to: l.to, sent: l.sent}
	defer conn.close()
	once := func() (uint64, error) {
		ctx, cancel := context.WithTimeout(ctx, answerTimeout)
		defer cancel()
		return l.list(ctx, &conn, l.reader(), false)
	}
	for began := time.Now(); ; {
		version, err := once()
		if err == nil {
			return version, nil
		}
		if time.Since(began) > beginWithin || !apiclient.Pause(ctx, retryAfter) {
			return 0, fmt.Errorf("load %s: list the registers before watching them: %w", l.config.Name, err)
		}
	}
}

// reader returns the client number for requests of the load itself. Lower numbers belong to the clients and watchers.
func (l *Load) reader() int { return l.config.Clients + l.config.Watchers }

// list lists all registers with a consistent read. It records the list as a read of each register by the client with
// the given number. If `final` is true, it marks these reads as Operation.Final.
func (l *Load) list(ctx context.Context, conn *connection, client int, final bool) (version uint64, err error) {
	call := l.record.now()
	path := listwatch.AppendQuery([]byte(l.registers.collection), listwatch.FreshList, 0, 0, l.registers.selector)
	answer, err := conn.ask(ctx, http.MethodGet, string(path), nil)
	end := l.record.now()
	var states []check.Operation
	switch {
	case err != nil:
	case answer.Status != http.StatusOK:
		err = failed("list", "configmaps", answer)
	default:
		version, states, err = l.registers.readList(answer.Body)
	}
	if !final {
		l.sample(answer, err, err == nil, end-call)
	}
	if err != nil {
		return 0, err
	}
	if !final && !l.record.begin(len(states)) {
		return version, nil // omit the read: a missing read cannot cause a violation
	}
	for _, o := range states {
		o.Client, o.Final, o.Call, o.Return = client, final, call, end
		l.record.end(o)
	}
	return version, nil
}

// BeginPhase does nothing, because the result of a history covers the whole run.
func (l *Load) BeginPhase(string, time.Time) {}

// Live returns the current state, with rates since the last call.
func (l *Load) Live() load.Live {
	all, well := l.record.ended()
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	live := load.Live{Offered: l.rate.Since(now, all), Achieved: l.well.Since(now, well)}
	for _, w := range l.watchers {
		w.mu.Lock()
		if !w.up.IsZero() {
			live.Open++
		}
		live.Delivered += w.events
		w.mu.Unlock()
	}
	return live
}

// Close stops the watchers. Finish calls it too.
func (l *Load) Close() {
	l.mu.Lock()
	stop := l.stopWatching
	l.mu.Unlock()
	if stop != nil {
		stop()
	}
	l.watching.Wait()
}

var errNotRun = errors.New("the load did not run to its end")
