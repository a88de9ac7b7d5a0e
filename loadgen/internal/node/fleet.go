package node

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"net/url"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/client-go/rest"

	"github.com/stormglass/stormglass/loadgen/internal/apiclient"
	"github.com/stormglass/stormglass/loadgen/internal/apiclient/h2conn"
	"github.com/stormglass/stormglass/loadgen/internal/apiclient/listwatch"
	"github.com/stormglass/stormglass/loadgen/internal/samples"
	"github.com/stormglass/stormglass/loadgen/result"
)

// sharedConnections is the number of connections with fidelity "shared". Each carries as many concurrent requests as
// the server allows.
const sharedConnections = 8

// Fleet simulates the nodes of one run, or one process's part of them. Its methods may be called concurrently, but
// Start only once.
type Fleet struct {
	plan     *plan
	chooser  *chooser
	ledger   *ledger
	workers  *workers
	ctx      context.Context
	cancel   context.CancelFunc
	kubelets []*kubelet
	origin   time.Time // start of the first slot (see renewalSlot)
	byName   map[string]*kubelet
	links    []*link

	api    *apiServer     // nil if the nodes do not serve the kubelet API
	poller *h2conn.Poller // nil until Start

	listFirst    atomic.Bool // whether the server does not support WatchList
	registered   atomic.Int64
	unmounted    atomic.Int64 // number of pods whose volumes were unmounted
	readySeconds atomic.Int64 // duration of Start in nanoseconds; 0 until Start has succeeded
	unrotated    atomic.Bool  // whether the last renewal of a client certificate failed

	mu         sync.Mutex
	generation uint64
	shared     *watcher // the pod watch with fidelity "shared"; nil with other fidelities
}

// New checks the configuration and returns a Fleet. It sends no request.
func New(cfg Config) (*Fleet, error) {
	p, err := cfg.validate()
	if err != nil {
		return nil, err
	}
	f := &Fleet{
		plan: p, workers: newWorkers(), origin: p.clock.Now(), byName: make(map[string]*kubelet, p.Part.Part(p.Spec.Count)),
	}
	f.chooser = newChooser(p, []Part{f}, func(i int) netip.Addr { return f.kubelets[i].hostIP })
	if f.ledger, err = newLedger(p.Registerer, p.Spec.LeaseRenew.D()); err != nil {
		return nil, err
	}
	f.ledger.samples = p.Samples.Streams(samples.Nodes)
	f.ctx, f.cancel = context.WithCancel(context.Background())
	roots := &apiclient.Roots{}
	if !p.own() {
		identity := func(ctx context.Context) (*rest.Config, error) { return p.Identities.For(ctx, p.nodeName(0)) }
		for range min(sharedConnections, p.Part.Part(p.Spec.Count)) {
			f.links = append(f.links, f.newLink(roots, identity, 0))
		}
	}
	proxies := &once{make: p.Identities.ForProxies, clock: p.clock}
	for n := range p.Part.Part(p.Spec.Count) {
		i := p.Part.Number(n)
		name := p.nodeName(i)
		if p.own() {
			identity := func(ctx context.Context) (*rest.Config, error) { return p.Identities.For(ctx, name) }
			f.links = append(f.links, f.newLink(roots, identity, 2*i))
		}
		k := newKubelet(f, i, f.links[n%len(f.links)])
		if p.Spec.KubeProxy {
			k.proxy = f.newLink(roots, proxies.get, 2*i+1)
		}
		if i >= p.early() {
			k.state = absent
		}
		f.kubelets = append(f.kubelets, k)
		f.byName[name] = k
	}
	return f, nil
}

// newLink makes a link (a connection to the API server). The seed and number determine when the link renews its client
// certificate.
func (f *Fleet) newLink(roots *apiclient.Roots, identity func(context.Context) (*rest.Config, error), number int) *link {
	rng := rand.New(rand.NewPCG(uint64(f.plan.Seed), 0xce47<<48|uint64(number)))
	return &link{
		fleet: f, identity: identity, userAgent: f.plan.userAgent(), roots: roots, ledger: f.ledger, rotation: rotation{jitter: rng.Float64()},
	}
}

// pollEvery is the interval at which the poller polls connections while responses arrive. Polling delays a node's next
// request by 2.5 ms on average. A real kubelet takes 50 ms or more, so this delay is small. Polling saves a quarter of
// the CPU time.
const pollEvery = 5 * time.Millisecond

// Start registers all nodes except the last Spec.Later, at Spec.RegisterRate per second. It returns nil when the API
// server has acknowledged all of them as Ready, or an error when one node fails permanently or ctx ends. If
// the Fleet is only a part of all nodes (Config.Part), each node registers at the same time as in a Fleet of all nodes.
// Call Stop even after an error.
func (f *Fleet) Start(ctx context.Context) error {
	begin := f.plan.clock.Now()
	f.origin = begin
	var err error
	if f.poller, err = h2conn.NewPoller(pollEvery); err != nil {
		return err
	}
	for _, l := range f.allLinks() {
		l.poller = f.poller
	}
	if f.plan.API != nil {
		if err := f.serveAPI(ctx); err != nil {
			f.plan.Log("the simulated nodes cannot serve a kubelet API: %v", err)
		}
	}
	if !f.plan.own() {
		f.startShared()
	}
	now := f.present()
	if f.plan.Part.Whole() { // otherwise the coordinating process launches the instances
		if err := f.chooser.launch(0, f.plan.early()); err != nil {
			return err
		}
	}
	done := make(chan error, len(now))
	pace := f.register(now, 0, func(_ *kubelet, err error) { done <- err })
	defer pace.cancel() // cancel registrations that have not started
	for range now {
		select {
		case err := <-done:
			if err != nil {
				return hint(err)
			}
		case <-ctx.Done():
			return fmt.Errorf("%d of %d nodes are Ready: %w", f.registered.Load(), len(now), context.Cause(ctx))
		}
	}
	f.readySeconds.Store(int64(f.plan.clock.Since(begin)))
	f.relist()
	return nil
}

// register starts to register kubelets, at Spec.RegisterRate per second. The kubelet whose index is `first` registers
// immediately; each later one waits for its turn. When a kubelet is Ready or has failed, register calls done.
// Cancelling pace stops the registrations that have not started.
func (f *Fleet) register(kubelets []*kubelet, first int, done func(*kubelet, error)) (pace *life) {
	gap := time.Duration(float64(time.Second) / float64(f.plan.Spec.RegisterRate))
	pace = newLife(f.ctx, f.plan.clock, f.workers, f.ledger, nil)
	for _, k := range kubelets {
		pace.after(time.Duration(k.index-first)*gap, func() {
			err := k.run(k.wake(f.ctx, 0), registerPatience)
			if err == nil {
				f.registered.Add(1)
			}
			done(k, err)
		})
	}
	return pace
}

func (f *Fleet) startShared() {
	rng := rand.New(rand.NewPCG(uint64(f.plan.Seed), 0x5a4ed))
	life := newLife(f.ctx, f.plan.clock, f.workers, f.ledger, rng)
	pods := f.watcher(life, f.links[0], "pods", "/api/v1/pods", fields("spec.nodeName!="))
	pods.layout, pods.sink = podLayout(), f.podSink()
	nodes := f.watcher(life, f.links[0], "nodes", "/api/v1/nodes", nil)
	nodes.layout = nodeLayout()
	nodes.sink.event = func(_ string, _ []byte, v view) {
		if k := f.byName[string(v.Name)]; k != nil {
			k.sawNode(v)
		}
	}
	f.mu.Lock()
	f.shared = pods
	f.mu.Unlock()
	pods.start()
	nodes.start()
}

// podSink returns a sink that passes the events of the shared pod watch to the pods' nodes.
func (f *Fleet) podSink() sink {
	each := func(do func(*kubelet)) func() {
		return func() {
			for _, k := range f.kubelets {
				do(k)
			}
		}
	}
	event := func(kind string, object []byte, v view) {
		if k := f.byName[string(v.nodeName)]; k != nil {
			k.event(kind, object, v)
		}
	}
	return sink{each((*kubelet).begin), event, each((*kubelet).listed)}
}

// watcher returns a watcher of the objects at path, with the timeouts of a client-go reflector. selector holds the
// query parameters that select objects; nil selects all.
func (f *Fleet) watcher(l *life, to *link, resource, path string, selector url.Values) *watcher {
	w := &watcher{
		life: l, link: to, resource: resource, path: path, sink: noSink(), timeout: listwatch.ShortestWatch, listFirst: &f.listFirst,
		machine: listwatch.Machine{Backoff: listwatch.Backoff(), State: listwatch.WatchList, Next: listwatch.WatchList, WaitLost: true},
	}
	if len(selector) > 0 {
		w.selector = "&" + selector.Encode()
	}
	return w
}

// relist makes the shared watch start again with a list of all pods, so that newly registered nodes get their pods.
func (f *Fleet) relist() {
	f.mu.Lock()
	shared := f.shared
	f.mu.Unlock()
	if shared != nil {
		shared.relist()
	}
}

// Live holds the current state of a fleet, for display during a run.
type Live struct {
	Count, Registered, Ready, Failed int
	Slow                             int // number of nodes that a fault has made slow
	PodsRunning                      int
	Watches                          int
	Heartbeats, Missed               int64
}

// Live returns the current state of the fleet.
func (f *Fleet) Live() Live {
	l := f.ledger
	slow := 0
	for _, k := range f.kubelets {
		if k.delay.Load() > 0 {
			slow++
		}
	}
	return Live{
		Slow:  slow,
		Count: len(f.kubelets), Registered: int(f.registered.Load()), Ready: int(l.ready.Load()), Failed: int(l.failed.Load()),
		PodsRunning: int(l.podsRunning.Load()), Watches: int(l.watches.Load()),
		Heartbeats: l.heartbeats.Load(), Missed: l.missedHere.Load() + l.missedThere.Load(),
	}
}

// Results returns the nodes' results so far.
func (f *Fleet) Results() result.Nodes {
	r := f.ledger.results()
	r.Count, r.Fidelity = len(f.kubelets), f.plan.Spec.Fidelity
	r.ReadySeconds = time.Duration(f.readySeconds.Load()).Seconds()
	return r
}

// Tally returns the nodes' results so far, in a form that can be added to the results of other parts.
func (f *Fleet) Tally() Tally {
	t := Tally{Sums: f.Results(), Heartbeat: f.ledger.heartbeat.Counts()}
	t.Sums.Heartbeat = result.Latency{}
	return t
}

// Names returns the names of all nodes in order. It leaves out the nodes that no NodeScaleUp has added yet.
func (f *Fleet) Names() []string {
	var names []string
	for _, k := range f.present() {
		names = append(names, k.name)
	}
	return names
}

func (f *Fleet) present() []*kubelet {
	return slices.DeleteFunc(slices.Clone(f.kubelets), func(k *kubelet) bool { return k.is(absent) })
}

// Stop ends all work and connections. It returns when the last goroutine has ended, or when ctx ends. It does not delete
// objects.
func (f *Fleet) Stop(ctx context.Context) {
	f.cancel()
	if f.poller != nil {
		defer f.poller.Close()
	}
	for _, k := range f.kubelets {
		k.end()
	}
	f.api.close()
	idle := f.workers.close()
	links := f.allLinks()
	for _, l := range links {
		l.Drop(false) // wakes requests that wait on the link
	}
	select {
	case <-idle:
	case <-ctx.Done():
		return
	}
	for _, l := range links {
		l.Drop(false) // connections opened since the first Drop
		l.Ended(ctx)
	}
}

// allLinks returns the links of the kubelets and of the kube-proxies.
func (f *Fleet) allLinks() []*link {
	links := slices.Clone(f.links)
	for _, k := range f.kubelets {
		if k.proxy != nil {
			links = append(links, k.proxy)
		}
	}
	return links
}
