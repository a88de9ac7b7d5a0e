package request

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/stormglass/stormglass/loadgen/internal/apiclient"
	"github.com/stormglass/stormglass/loadgen/internal/apiclient/h2conn"
	"github.com/stormglass/stormglass/loadgen/internal/load"
	"github.com/stormglass/stormglass/loadgen/internal/load/arrival"
	"github.com/stormglass/stormglass/loadgen/result"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

// Options of the connections. The ping interval is client-go's (apimachinery/pkg/util/net).
const (
	readBuffer         = 64 << 10
	pingAfter          = 30 * time.Second
	defaultConnections = 4
)

// Requests is an open-loop load that sends the requests of an Operation.
type Requests struct {
	measured
	op   Operation
	pool *h2conn.Pool
}

var _ load.Load = (*Requests)(nil)

// New returns a load that sends the requests of the operation op. New sends nothing. Its errors contain the load's
// name.
func New(t load.Target, l scenario.Load, op Operation, pacer arrival.Pacer) (*Requests, error) {
	timeout := l.Timeout.D()
	if l.MaxInFlight <= 0 || timeout <= 0 {
		return nil, fmt.Errorf("load %s: maxInFlight and timeout must be over 0", l.Name)
	}
	to, err := apiclient.New(t.Config, &apiclient.Roots{})
	if err != nil {
		return nil, fmt.Errorf("load %s: %w", l.Name, err)
	}
	all, err := newMetrics(t.Registerer, l.Name, op.Kinds())
	if err != nil {
		return nil, fmt.Errorf("load %s: %w", l.Name, err)
	}
	connections := l.Connections
	if connections <= 0 {
		connections = defaultConnections
	}
	deferred := defersAnswers(l, op, connections)
	pool := h2conn.NewPool(to.Addr, h2conn.Options{
		TLS: to.TLS, DialContext: to.DialContext, ReadBuffer: readBuffer, Queued: true, Ping: pingAfter, StampArrivals: true, Deferred: deferred,
	}, connections)
	engine := newEngine(op.Kinds(), pacer, all, int64(l.MaxInFlight), timeout)
	engine.op, engine.pool, engine.deferred = op, pool, deferred
	engine.of(t, l.Name)
	return &Requests{measured: measured{name: l.Name, engine: engine}, op: op, pool: pool}, nil
}

// Prepare prepares the operation and opens the connections.
func (r *Requests) Prepare(ctx context.Context) error {
	if err := r.op.Prepare(ctx); err != nil {
		return err
	}
	return r.pool.Open(ctx)
}

// Run sends requests until ctx ends. It returns when all requests have ended.
func (r *Requests) Run(ctx context.Context) error {
	defer r.pool.Close()
	background, cancel := context.WithCancel(ctx)
	var beside sync.WaitGroup
	beside.Go(func() { r.op.Background(background) })
	r.engine.run(ctx)
	cancel()
	beside.Wait()
	return nil
}

// Over returns a channel that is closed when the schedule has no further arrivals and all requests have ended.
func (r *Requests) Over() <-chan struct{} { return r.engine.over }

// Backlog returns the number of bytes of responses that the kernel has received and this process has not read yet.
func (r *Requests) Backlog() int64 { return r.pool.Backlog() }

// measured implements the methods of load.Load for phases and results.
type measured struct {
	load.Plain
	name   string
	engine *engine
}

// BeginPhase begins a phase. A request belongs to the phase of its intended start.
func (r *measured) BeginPhase(name string, at time.Time) { r.engine.phases.Begin(name, at) }

// Live returns the rates and latencies since the previous call.
func (r *measured) Live() load.Live { return r.engine.window.live(time.Now()) }

// Overdue returns the number of open requests whose intended start was at least d ago.
func (r *measured) Overdue(d time.Duration) int64 {
	e := r.engine
	e.mu.Lock()
	start := e.start
	e.mu.Unlock()
	if start.IsZero() {
		return 0
	}
	return e.flights.openFor(d, time.Since(start))
}

// Results returns the results by phase: one for each kind of request. Rates are computed over the time in which
// arrivals were due in the phase. The results are final after Run.
func (r *measured) Results() map[string][]result.Requests { return r.engine.results(r.name) }

// Parts returns this worker's results by phase.
func (r *measured) Parts() []load.Part { return r.engine.parts(r.name) }

// AddTo adds the results to the phases of m.
func (r *measured) AddTo(m *result.Measurements) {
	load.AddToPhases(m, r.Results(), func(p *result.Phase, all []result.Requests) { p.Requests = append(p.Requests, all...) })
}
