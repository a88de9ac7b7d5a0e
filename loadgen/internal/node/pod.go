package node

import (
	"bytes"
	"net/netip"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Retries of a pod's token and status are a kubelet's.
const (
	podBackoff    = 500 * time.Millisecond
	podBackoffMax = 10 * time.Second
	// volumeLoop is how often a kubelet's volume manager looks for work, twice before it mounts
	// (pkg/kubelet/volumemanager). Sooner, the Node authorizer has often not seen the binding and refuses a token.
	volumeLoop = 100 * time.Millisecond
)

type podState uint8

const (
	starting podState = iota
	running
	stopping
	ended // phase Succeeded or Failed: nothing is left to do
)

// pod holds what a node remembers of a pod.
type pod struct {
	namespace, name string
	uid             types.UID
	state           podState
	ip              netip.Addr // of the node's own; invalid before the start and on the host's network
	version         uint64     // resourceVersion of our last status write
	counted         bool       // as started
	listing         uint32     // the last listing it was seen in
	refs            []objectRef
	// overtaken is the pod as another client changed it while our status was on its way.
	overtaken []byte
}

// begin, event and listed make a kubelet the sink of its pods' watch.
func (k *kubelet) begin() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.listing++
}

func (k *kubelet) event(kind string, object []byte, v view) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.life == nil || k.life.over() {
		return
	}
	p := k.pods[types.UID(v.uid)]
	switch {
	case kind == "DELETED":
		k.forget(p)
		return
	case p == nil:
		p = k.admit(object, v)
	case v.deleting && p.state != stopping:
		k.stop(p, object)
	case p.state == running && string(v.ready) != "True" && number(string(v.version)) > p.version:
		// The node lifecycle controller changes the status on a node it takes for dead.
		k.repair(p, object)
	case p.state == starting && string(v.ready) != "True":
		p.overtaken = bytes.Clone(object)
	}
	if p != nil {
		p.listing = k.listing
	}
}

func (k *kubelet) listed() {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, p := range k.pods {
		if p.listing != k.listing {
			k.forget(p)
		}
	}
}

// admit takes on an unknown pod. Like all below that do not take k.mu, it is called with it held.
func (k *kubelet) admit(object []byte, v view) *pod {
	spec := k.decodePod(object)
	if spec == nil {
		return nil
	}
	p := &pod{namespace: spec.Namespace, name: spec.Name, uid: spec.UID, listing: k.listing}
	k.pods[p.uid] = p
	switch {
	case v.deleting:
		k.stopDecoded(p, spec)
	case finished(spec.Status.Phase):
		p.state = ended
	case k.state == shuttingDown:
		p.state = ended
		k.reject(p, spec)
	default:
		k.reference(p, spec)
		if !k.adopt(p, spec) {
			k.begins(p, spec)
		}
	}
	return p
}

// adopt takes over a pod that an earlier fleet of the same names left running.
func (k *kubelet) adopt(p *pod, spec *corev1.Pod) bool {
	if spec.Status.Phase != corev1.PodRunning {
		return false
	}
	if !spec.Spec.HostNetwork {
		ip, err := netip.ParseAddr(spec.Status.PodIP)
		if err != nil || !k.ips.adopt(ip) {
			return false
		}
		p.ip = ip
	}
	p.state, p.counted = running, true
	k.ledger.podsRunning.Add(1)
	if !isReady(spec) {
		k.report(k.life, p, spec)
	}
	return true
}

func (k *kubelet) decodePod(object []byte) *corev1.Pod {
	spec := &corev1.Pod{}
	if err := spec.Unmarshal(object); err != nil {
		k.plan.Log("node %s: a pod could not be decoded: %v", k.name, err)
		return nil
	}
	return spec
}

func (k *kubelet) in(p *pod, s podState) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return p.state == s && k.pods[p.uid] == p
}
