package node

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/netip"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/stormglass/stormglass/loadgen/wire"
)

const (
	// Retries of a registration: a kubelet's.
	registerBackoff    = 100 * time.Millisecond
	registerBackoffMax = 7 * time.Second
	// registerPatience is how long a node tries to register before the fleet's
	// start is given up.
	registerPatience = time.Minute
	// watchTimeout is the least timeoutSeconds of client-go's reflectors.
	watchTimeout = 5 * time.Minute
	// statusUpdate is a kubelet's nodeStatusUpdateFrequency: how often it looks
	// whether its node's conditions are still its own.
	statusUpdate = 10 * time.Second
)

// kubelet is one simulated node.
type kubelet struct {
	fleet  *Fleet
	plan   *plan
	ledger *ledger
	index  int
	name   string
	hostIP netip.Addr
	link   *link

	mu      sync.Mutex
	life    *life     // nil before the first
	uid     types.UID // of the Node; empty until it was made
	beat    *heartbeat
	failed  bool
	ready   bool // as last seen
	settled bool // the Ready patch of this life was acknowledged
	mending bool // a Ready patch is on its way
	pods    map[types.UID]*pod
	objects map[objectRef]*objectWatch
	ips     addresses
	listing uint32
}

func newKubelet(f *Fleet, index int, link *link) *kubelet {
	k := &kubelet{
		fleet: f, plan: f.plan, ledger: f.ledger, index: index, name: f.plan.nodeName(index), hostIP: hostIP(index), link: link,
	}
	k.clear()
	return k
}

// clear forgets all pods. Called with mu held, or before anybody else knows k.
func (k *kubelet) clear() {
	for _, p := range k.pods {
		if p.state == running {
			k.ledger.podsRunning.Add(-1)
		}
	}
	k.pods, k.objects = map[types.UID]*pod{}, map[objectRef]*objectWatch{}
	k.ips = addresses{prefix: k.plan.podCIDR(k.index)}
}

// wake begins a life.
func (k *kubelet) wake(parent context.Context, generation uint64) *life {
	rng := rand.New(rand.NewPCG(uint64(k.plan.Seed), uint64(k.index)<<16|generation&0xffff))
	life := newLife(parent, k.plan.clock, k.fleet.crew, k.ledger, rng)
	k.mu.Lock()
	defer k.mu.Unlock()
	k.life, k.failed, k.settled, k.mending = life, false, false, false
	return life
}

// run registers, as a starting kubelet does, and returns when the API server
// has acknowledged the node as Ready.
func (k *kubelet) run(life *life) error {
	deadline := life.clock.Now().Add(registerPatience)
	for failures := 1; ; failures++ {
		err := k.register(life)
		if err == nil {
			return nil
		}
		if life.over() {
			return life.ctx.Err()
		}
		if final(err) || life.clock.Now().After(deadline) {
			return fmt.Errorf("register node %s: %w", k.name, err)
		}
		if !life.wait(life.ctx, life.backoff(registerBackoff, registerBackoffMax, failures)) {
			return life.ctx.Err()
		}
	}
}

// final errors will not go away by trying again.
func final(err error) bool {
	var stranger *strangerError
	return apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) || apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) ||
		errors.As(err, &stranger) || isCertificateError(err)
}

// strangerError: the Node exists and is not this run's.
type strangerError struct{ node string }

func (e *strangerError) Error() string {
	return fmt.Sprintf("create nodes: %q exists already and does not carry this run's labels (choose another name prefix)", e.node)
}

// register makes the Node, its Lease and CSINode, opens the watches, reports
// Ready and starts the heartbeats.
func (k *kubelet) register(life *life) error {
	uid, err := k.createNode(life)
	if err != nil {
		return err
	}
	owner := metav1.OwnerReference{APIVersion: "v1", Kind: "Node", Name: k.name, UID: uid}
	lease := &leaseKeeper{
		node: k.name, owner: owner, life: life, link: k.link,
		seconds: int32(max(1, (4*k.plan.Spec.LeaseRenew.D()+time.Second-1)/time.Second)),
	}
	if err := lease.create(life.ctx); err != nil {
		return err
	}
	if err := k.createCSINode(life, owner); err != nil {
		return err
	}
	body, err := readyPatch(life.clock.Now())
	if err != nil {
		return err
	}
	if err := k.patchStatus(life, body); err != nil {
		return err
	}
	beat := &heartbeat{life: life, interval: k.plan.Spec.LeaseRenew.D(), renew: lease.renew, broken: k.reconnect}
	k.mu.Lock()
	defer k.mu.Unlock()
	if life.over() {
		return life.ctx.Err()
	}
	k.settled, k.beat = true, beat
	k.setReady(true)
	beat.start()
	k.watch(life)
	life.after(time.Duration((0.5+life.float())*float64(k.plan.Spec.StatusReport.D())), func() { k.reportStatus(life) })
	return nil
}

// reconnect is what a kubelet does whose heartbeats fail repeatedly. Shared
// connections are left alone: the other nodes' requests are on them.
func (k *kubelet) reconnect() {
	if k.plan.Spec.Fidelity == Kubelet {
		k.link.drop(false)
	}
}

func (k *kubelet) createNode(life *life) (types.UID, error) {
	body, err := encode("v1", "Node", k.plan.newNode(k.index, life.clock.Now()))
	if err != nil {
		return "", err
	}
	const path = "/api/v1/nodes"
	answer, err := k.link.do(life.ctx, call{
		verb: "create", resource: "nodes", method: http.MethodPost, path: path, contentType: wire.ContentType, body: body, urgent: true,
	})
	existed := apierrors.IsAlreadyExists(err)
	if existed {
		answer, err = k.link.do(life.ctx, call{verb: "get", resource: "nodes", method: http.MethodGet, path: path + "/" + k.name, urgent: true})
	}
	if err != nil {
		return "", err
	}
	var n corev1.Node
	if err := decode(answer, &n); err != nil {
		return "", fmt.Errorf("create nodes: read the answer: %w", err)
	}
	if existed {
		for key, value := range k.plan.Labels {
			if n.Labels[key] != value {
				return "", &strangerError{k.name}
			}
		}
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.uid = n.UID
	return n.UID, nil
}

func (k *kubelet) createCSINode(life *life, owner metav1.OwnerReference) error {
	body, err := encode("storage.k8s.io/v1", "CSINode", newCSINode(owner))
	if err != nil {
		return err
	}
	_, err = k.link.do(life.ctx, call{
		verb: "create", resource: "csinodes", method: http.MethodPost, path: "/apis/storage.k8s.io/v1/csinodes",
		contentType: wire.ContentType, body: body, urgent: true,
	})
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}

func (k *kubelet) patchStatus(life *life, body []byte) error {
	_, err := k.link.do(life.ctx, call{
		verb: "patch", resource: "nodes/status", method: http.MethodPatch, path: "/api/v1/nodes/" + k.name + "/status",
		contentType: strategic, body: body, urgent: true,
	})
	if err == nil {
		k.ledger.statusWrites.Add(1)
	}
	return err
}

// reportStatus is the report of an unchanged status, each StatusReport (5 minutes)
// after the first, whose time is drawn as a kubelet's is.
func (k *kubelet) reportStatus(life *life) {
	life.after(k.plan.Spec.StatusReport.D(), func() { k.reportStatus(life) })
	if body, err := heartbeatPatch(life.clock.Now()); err == nil {
		_ = k.patchStatus(life, body) // counted; the next report is as good
	}
}

// watch opens the watches every kubelet holds.
func (k *kubelet) watch(life *life) {
	if k.plan.Spec.Fidelity != Kubelet {
		return
	}
	open := func(resource, path, selector string, l layout, s sink, optional bool) {
		w := k.fleet.watcher(life, k.link, resource, path, selector)
		w.layout, w.sink, w.optional = l, s, optional
		w.start()
	}
	open("nodes", "/api/v1/nodes", "metadata.name="+k.name, nodeLayout(), nodeSink{k}, false)
	open("pods", "/api/v1/pods", "spec.nodeName="+k.name, podLayout(), k, false)
	open("services", "/api/v1/services", "spec.clusterIP!=None", layout{}, nil, false)
	open("csidrivers", "/apis/storage.k8s.io/v1/csidrivers", "", layout{}, nil, false)
	open("runtimeclasses", "/apis/node.k8s.io/v1/runtimeclasses", "", layout{}, nil, false)
	open("podcertificaterequests", "/apis/certificates.k8s.io/v1/podcertificaterequests", "spec.nodeName="+k.name, layout{}, nil, true)
}

// nodeSink lets a kubelet see its own Node.
type nodeSink struct{ *kubelet }

func (nodeSink) begin()  {}
func (nodeSink) listed() {}

func (s nodeSink) event(_ string, _ []byte, v view) { s.sawNode(string(v.ready) == "True") }

// sawNode compares the Ready condition with our own: the node lifecycle
// controller sets it to Unknown when heartbeats stay out, and a kubelet that
// is alive sets it right at its next look.
func (k *kubelet) sawNode(ready bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.life == nil || k.life.over() || !k.settled {
		return
	}
	k.setReady(ready)
	if !ready && !k.mending {
		k.mending = true
		life := k.life
		life.after(time.Duration(life.float()*float64(statusUpdate)), func() { k.mend(life) })
	}
}

func (k *kubelet) mend(life *life) {
	body, err := readyPatch(life.clock.Now())
	if err == nil {
		err = k.patchStatus(life, body)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if life.over() {
		return
	}
	if err != nil {
		life.after(statusUpdate, func() { k.mend(life) })
		return
	}
	k.mending = false
	k.setReady(true)
}

// setReady is called with mu held.
func (k *kubelet) setReady(ready bool) {
	if k.ready == ready {
		return
	}
	k.ready = ready
	if ready {
		k.ledger.ready.Add(1)
	} else {
		k.ledger.ready.Add(-1)
	}
}

// fail makes the node go silent at once.
func (k *kubelet) fail() {
	k.end()
	k.mu.Lock()
	k.failed = true
	k.mu.Unlock()
	k.ledger.failed.Add(1)
	if k.plan.Spec.Fidelity == Kubelet {
		k.link.drop(true)
	}
}

// end ends the life without a word to the server.
func (k *kubelet) end() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.life != nil {
		k.life.cancel()
	}
	if k.beat != nil {
		k.beat.stop()
		k.beat = nil
	}
	k.setReady(false)
	k.clear()
}
