package node

import (
	"context"
	"math/rand/v2"
	"net/netip"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/stormglass/stormglass/internal/kubeletapi"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

// statusUpdate is a kubelet's nodeStatusUpdateFrequency.
const statusUpdate = 10 * time.Second

type nodeState uint8

const (
	up           nodeState = iota
	shuttingDown           // the node shuts down gracefully, and still sends requests
	down                   // the node sends no requests
	absent                 // the node does not register until a NodeScaleUp
	joining                // the node was absent, and will register
)

type kubelet struct {
	fleet  *Fleet
	plan   *plan
	ledger *ledger
	index  int
	name   string
	hostIP netip.Addr
	port   int32 // port of the node's kubelet API
	link   *link
	proxy  *link        // connection of the node's kube-proxy; nil without a kube-proxy
	delay  atomic.Int64 // delay of all writes of a slow node, in nanoseconds
	lives  int          // number of starts so far; counted only with fidelity "kubelet"

	mu        sync.Mutex
	life      *life // current run of the kubelet; nil before the first start
	heartbeat *heartbeat
	state     nodeState
	ready     bool // whether the condition Ready is true, as last reported or as last seen in a watch
	settled   bool // whether the API server has acknowledged Ready since the last start
	mending   bool // whether a patch that makes the node Ready is planned or in flight
	pods      map[types.UID]*pod
	objects   map[objectRef]*objectWatch
	ips       addresses
	images    images
	listing   uint32        // number of the newest list of pods
	reports   int           // number of pending status reports of a shutdown
	isolated  chan struct{} // nil while the kubelet API is reachable; closed when it is reachable again
	pressures map[corev1.NodeConditionType]*pressure
	labels    map[string]string // labels of the Node as last read; nil means as registered
	taints    []corev1.Taint    // taints of the Node as last seen in a watch, or as registered
	used      cpuTime
	counters  map[string]cpuCounter // CPU counters, by pod UID and container name
}

func newKubelet(f *Fleet, index int, link *link) *kubelet {
	k := &kubelet{
		fleet: f, plan: f.plan, ledger: f.ledger, index: index, name: f.plan.nodeName(index), hostIP: hostIP(index), port: kubeletapi.Port, link: link,
		taints: f.plan.poolOf(index).taints,
	}
	for _, image := range f.plan.poolOf(index).Images {
		k.images.add(image, time.Time{})
	}
	k.clear()
	return k
}

// clear makes k forget all pods. The caller holds mu, except in newKubelet.
func (k *kubelet) clear() {
	for _, p := range k.pods {
		if p.state == running {
			k.ledger.podsRunning.Add(-1)
		}
		k.ledger.unready.saw(p.uid, false, time.Time{})
		k.ledger.held.saw(p.uid, false, time.Time{})
		if p.lifecycle != nil {
			p.lifecycle.cancel()
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
	k.life, k.state, k.settled, k.mending, k.pressures = life, up, false, false, nil
	return life
}

// podCertificates is the first Kubernetes version whose kubelets watch PodCertificateRequests by default
// (pkg/features/kube_features.go).
const podCertificates = "1.37"

// watch opens the watches of a kubelet and of its kube-proxy (cmd/kube-proxy/app/server.go, pkg/proxy/node.go). With
// fidelity "shared" it does nothing.
func (k *kubelet) watch(life *life) {
	if !k.plan.own() {
		return
	}
	open := func(to *link, resource, path string, selector url.Values, optional bool) *watcher {
		w := k.fleet.watcher(life, to, resource, path, selector)
		w.optional = optional
		return w
	}
	self := fields("metadata.name=" + k.name)
	if k.proxy != nil {
		services := fields("spec.clusterIP!=None")
		services.Set("labelSelector", "!service.kubernetes.io/service-proxy-name")
		slices := url.Values{"labelSelector": {"!service.kubernetes.io/headless"}}
		open(k.proxy, "nodes", "/api/v1/nodes", self, false).start()
		open(k.proxy, "services", "/api/v1/services", services, false).start()
		open(k.proxy, "endpointslices", "/apis/discovery.k8s.io/v1/endpointslices", slices, false).start()
		open(k.proxy, "servicecidrs", "/apis/networking.k8s.io/v1/servicecidrs", nil, true).start()
	}
	bound := fields("spec.nodeName=" + k.name)
	node := open(k.link, "nodes", "/api/v1/nodes", self, false)
	node.layout = nodeLayout()
	node.sink.event = func(_ string, _ []byte, v view) { k.sawNode(v) }
	node.start()
	pods := open(k.link, "pods", "/api/v1/pods", bound, false)
	pods.layout, pods.sink = podLayout(), sink{k.begin, k.event, k.listed}
	pods.start()
	open(k.link, "services", "/api/v1/services", fields("spec.clusterIP!=None"), false).start()
	open(k.link, "csidrivers", "/apis/storage.k8s.io/v1/csidrivers", nil, false).start()
	open(k.link, "runtimeclasses", "/apis/node.k8s.io/v1/runtimeclasses", nil, false).start()
	if k.plan.poolOf(k.index).Devices > 0 { // its device driver watches its own slices
		open(k.link, "resourceslices", resourceSlices, fields("spec.driver="+scenario.DeviceDriver+",spec.nodeName="+k.name), false).start()
	}
	if k.plan.Release.AtLeast(podCertificates) {
		open(k.link, "podcertificaterequests", "/apis/certificates.k8s.io/v1/podcertificaterequests", bound, true).start()
	}
}

// late calls f immediately, or after the node's delay if a fault has made the node slow.
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

// reconnect drops the node's connection after missed heartbeats, so that the next request opens a new one. It does not
// drop a connection that nodes share.
func (k *kubelet) reconnect() {
	if k.plan.own() {
		k.link.Drop(false)
	}
}

func fields(selector string) url.Values { return url.Values{"fieldSelector": {selector}} }
