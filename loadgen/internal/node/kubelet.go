package node

import (
	"context"
	"math/rand/v2"
	"net/netip"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

const (
	// statusUpdate is a kubelet's nodeStatusUpdateFrequency.
	statusUpdate = 10 * time.Second
)

type nodeState uint8

const (
	up           nodeState = iota
	shuttingDown           // in order; still there
	down                   // silent
)

type kubelet struct {
	fleet  *Fleet
	plan   *plan
	ledger *ledger
	index  int
	name   string
	hostIP netip.Addr
	link   *link
	proxy  *kubeProxy   // nil without one
	delay  atomic.Int64 // of all writes, on purpose; nanoseconds

	mu        sync.Mutex
	life      *life     // nil before the first
	uid       types.UID // of the Node; empty until it was made
	heartbeat *heartbeat
	state     nodeState
	ready     bool // as last seen
	settled   bool // the Ready patch of this life was acknowledged
	mending   bool // a Ready patch is on its way
	pods      map[types.UID]*pod
	objects   map[objectRef]*objectWatch
	ips       addresses
	images    images
	listing   uint32
	reports   int // of a shutdown that are still to be made
}

func newKubelet(f *Fleet, index int, link *link) *kubelet {
	k := &kubelet{
		fleet: f, plan: f.plan, ledger: f.ledger, index: index, name: f.plan.nodeName(index), hostIP: hostIP(index), link: link,
	}
	k.clear()
	return k
}

// clear forgets all pods. Called with mu held, or before k is shared.
func (k *kubelet) clear() {
	for _, p := range k.pods {
		if p.state == running {
			k.ledger.podsRunning.Add(-1)
		}
	}
	k.pods, k.objects = map[types.UID]*pod{}, map[objectRef]*objectWatch{}
	k.ips = addresses{prefix: k.plan.podCIDR(k.index)}
}

func (k *kubelet) wake(parent context.Context, generation uint64) *life {
	rng := rand.New(rand.NewPCG(uint64(k.plan.Seed), uint64(k.index)<<16|generation&0xffff))
	life := newLife(parent, k.plan.clock, k.fleet.workers, k.ledger, rng)
	k.mu.Lock()
	defer k.mu.Unlock()
	k.life, k.state, k.settled, k.mending = life, up, false, false
	return life
}

func (k *kubelet) watch(life *life) {
	if k.plan.Spec.Fidelity != Kubelet {
		return
	}
	open := func(resource, path, selector string, l layout, s sink, optional bool) {
		w := k.fleet.watcher(life, k.link, resource, path, fields(selector))
		w.layout, w.sink, w.optional = l, s, optional
		w.start()
	}
	all := noSink{}
	if k.proxy != nil {
		k.proxy.watch(life)
	}
	open("nodes", "/api/v1/nodes", "metadata.name="+k.name, nodeLayout(), nodeSink{kubelet: k}, false)
	open("pods", "/api/v1/pods", "spec.nodeName="+k.name, podLayout(), k, false)
	open("services", "/api/v1/services", "spec.clusterIP!=None", layout{}, all, false)
	open("csidrivers", "/apis/storage.k8s.io/v1/csidrivers", "", layout{}, all, false)
	open("runtimeclasses", "/apis/node.k8s.io/v1/runtimeclasses", "", layout{}, all, false)
	open("podcertificaterequests", "/apis/certificates.k8s.io/v1/podcertificaterequests", "spec.nodeName="+k.name, layout{}, all, true)
}

// late calls f; on a slow node after its delay.
func (k *kubelet) late(life *life, f func()) {
	if d := time.Duration(k.delay.Load()); d > 0 {
		life.after(d, f)
		return
	}
	f()
}

func (k *kubelet) end() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.endLocked()
}

func (k *kubelet) endLocked() {
	if k.life != nil {
		k.life.cancel()
	}
	if k.heartbeat != nil {
		k.heartbeat.stop()
		k.heartbeat = nil
	}
	k.setReady(false)
	k.clear()
}

// reconnect opens a new connection after failed heartbeats, but for a shared one.
func (k *kubelet) reconnect() {
	if k.plan.Spec.Fidelity == Kubelet {
		k.link.Drop(false)
	}
}

// fields is a field selector as part of a query; none where it is empty.
func fields(selector string) url.Values {
	if selector == "" {
		return nil
	}
	return url.Values{"fieldSelector": {selector}}
}
