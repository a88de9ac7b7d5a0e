package replay

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stormglass/stormglass/internal/atomicmax"
	"github.com/stormglass/stormglass/loadgen/internal/apiclient/h2conn"
	"github.com/stormglass/stormglass/loadgen/internal/latency"
	"github.com/stormglass/stormglass/loadgen/internal/load"
	"github.com/stormglass/stormglass/loadgen/internal/load/object"
	"github.com/stormglass/stormglass/loadgen/internal/load/request"
	"github.com/stormglass/stormglass/loadgen/internal/recording"
	"github.com/stormglass/stormglass/loadgen/result"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

// Load is a load of kind "replay".
type Load struct {
	*request.Requests
	load    scenario.Load
	target  load.Target
	op      *operation
	pacer   *pacer
	watches *watches
	client  *object.Client
	made    int

	start atomic.Int64 // start of the load in Unix nanoseconds
	mu    sync.Mutex
	ran   time.Duration // how long the load ran; 0 until Run has returned
}

var _ load.Load = (*Load)(nil)

// New returns a load of kind "replay". It sends no request.
func New(t load.Target, l scenario.Load) (*Load, error) {
	if l.Recorded == nil {
		return nil, fmt.Errorf("the recording of load %s was not read (read the scenario with scenario.Read)", l.Name)
	}
	client, err := object.NewClient(t.Config)
	if err != nil {
		return nil, fmt.Errorf("load %s: %w", l.Name, err)
	}
	templates, err := request.NewTemplates(t)
	if err != nil {
		return nil, fmt.Errorf("load %s: %w", l.Name, err)
	}
	o := OptionsOf(l, t.Seed)
	p := newPlan(l.Recorded, o, l.NamespacesIn(t.Namespace)[1:])
	r := &Load{load: l, target: t, client: client, pacer: &pacer{}}
	r.op = &operation{
		plan: p, templates: templates, prepare: r.prepare, now: r.now, await: r.await,
		ledger: &ledger{len(p.recording.Actors), o.Copies, make([]atomic.Int64, len(p.kinds)*len(p.recording.Actors)*o.Copies)},
	}
	if r.Requests, err = request.New(t, l, r.op, r.pacer); err != nil {
		return nil, err
	}
	to := templates.Endpoint()
	pool := h2conn.NewPool(to.Addr, h2conn.Options{TLS: to.TLS, DialContext: to.DialContext, ReadBuffer: watchBuffer, Ping: pingAfter}, l.Connections)
	r.watches = &watches{
		op: r.op, pool: pool, timeout: l.Timeout.D(), open: map[*held]bool{}, opened: latency.New(2 * l.Timeout.D()),
		counts: result.ReplayWatches{Codes: map[string]int64{}},
	}
	return r, nil
}

// Options of the connections for watches. The ping interval is client-go's (apimachinery/pkg/util/net).
const (
	watchBuffer = 64 << 10
	pingAfter   = 30 * time.Second
)

// now returns the time since the load's start, not counting pauses.
func (r *Load) now() time.Duration {
	return r.target.Pause.State().Elapsed(time.Unix(0, r.start.Load()), time.Now())
}

// await waits until the duration `at` has passed since the load's start, not counting pauses. It returns false if ctx
// ends first.
func (r *Load) await(ctx context.Context, at time.Duration) bool {
	_, due := r.target.Pause.Await(ctx, time.Unix(0, r.start.Load()), at)
	return due
}

// prepare discovers the cluster's resources, and creates the objects and the request templates of all users.
func (r *Load) prepare(ctx context.Context) error {
	defer r.client.Close()
	p := &preparer{
		plan: r.op.plan, client: r.client, load: r.load.Name, labels: maps.Clone(r.target.Labels), drop: r.load.OnMissing == "drop",
		text:      object.NewPayload(largest(r.load.Recorded), r.target.Seed),
		resources: map[string]*object.Resource{}, templates: map[string]*object.Template{}, refusals: map[string]error{},
	}
	if err := p.prepare(ctx); err != nil {
		return err
	}
	o := r.op
	if len(o.all) == 0 {
		notes := result.Replay{Load: r.load.Name, LeftOut: o.leftOut}.Notes()
		return fmt.Errorf("no request of the recording can be replayed on this cluster: %s", strings.Join(notes, "; "))
	}
	o.versions = make([]atomic.Uint64, len(o.recording.Objects)*o.options.Copies)
	o.newest.Store(p.newest)
	var err error
	r.made, err = p.make(ctx, func(object int32, copy int16, version uint64) {
		atomicmax.Raise(&o.versions[int(object)*o.options.Copies+int(copy)], version)
		atomicmax.Raise(&o.newest, version)
	})
	if err != nil {
		return err
	}
	o.keepPages()
	r.makeHeaders()
	r.pacer.arrivals = o.sent
	return nil
}

// largest returns the size of the largest body in the recording, in bytes, at most the largest payload of any resource.
func largest(t *recording.Recording) int {
	most := defaultSize
	for _, e := range t.Entries {
		most = max(most, int(e.Size))
	}
	return min(most, object.MaxPayload("secrets"))
}

func (r *Load) makeHeaders() {
	o := r.op
	o.headers = make([]*request.Template, len(o.recording.Actors)*o.options.Copies*len(o.classes))
	for _, a := range o.all {
		e := &o.recording.Entries[a.Entry]
		act := &o.actions[e.Shape]
		i := o.headerIndex(e, a, act)
		if o.headers[i] != nil {
			continue
		}
		actor, class := o.recording.Actors[e.Actor], o.classes[act.class]
		extra := http.Header{"Impersonate-Group": {scenario.TenantsGroup}}
		extra.Set("Impersonate-User", r.load.ActorUser(actor, int(a.Copy)))
		if class.gzip {
			extra.Set("Accept-Encoding", "gzip") // as in client-go
		}
		o.headers[i] = o.templates.NewAs(actor.UserAgent, class.method, jsonType, class.contentType, extra)
	}
}

// Run replays the recording until ctx ends. It returns when all requests have ended.
func (r *Load) Run(ctx context.Context) error {
	r.start.Store(time.Now().UnixNano())
	var watching sync.WaitGroup
	watching.Go(func() { r.watches.run(ctx) })
	ended := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.ran = r.now()
		close(ended)
	})
	defer stop()
	err := r.Requests.Run(ctx)
	watching.Wait()
	if ctx.Err() != nil {
		<-ended
	}
	return err
}

// Live returns the rates and latencies since the previous call, and the number of open watches.
func (r *Load) Live() load.Live {
	live := r.Requests.Live()
	live.Open = r.watches.live()
	return live
}

// Backlog returns the number of bytes that the kernel has received and the load has not read.
func (r *Load) Backlog() int64 { return r.Requests.Backlog() + r.watches.pool.Backlog() }

// AddTo adds the results of the requests to the phases of m, and the result of the replay to m.
func (r *Load) AddTo(m *result.Measurements) {
	r.Requests.AddTo(m)
	m.Replays = append(m.Replays, r.Replay())
}
