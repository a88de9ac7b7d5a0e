package node

import (
	"bytes"
	"context"
	"net/http"
	"net/netip"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/stormglass/stormglass/loadgen/wire"
)

// Retries of a pod's token and status, as a kubelet's volume and status
// managers space them.
const (
	podBackoff    = 500 * time.Millisecond
	podBackoffMax = 10 * time.Second
	// A kubelet's volume manager looks for work every 100 ms and mounts what it
	// then finds in a second loop of 100 ms (pkg/kubelet/volumemanager), so a
	// pod's token is asked for a little after the pod was seen. Sooner, the
	// Node authorizer has often not heard of the binding yet and refuses.
	volumeLoop = 100 * time.Millisecond
)

type podState uint8

const (
	starting podState = iota
	running
	stopping
	ended // phase Succeeded or Failed: nothing is left to do
)

// pod is what a node remembers of a pod. The rest comes with the event that
// needs it.
type pod struct {
	namespace, name string
	uid             types.UID
	state           podState
	ip              netip.Addr // of the node's own; invalid before the start and on the host's network
	version         uint64     // resourceVersion of our last status write
	counted         bool       // as started
	listing         uint32     // the last listing it was seen in
	refs            []objectRef
	// overtaken is the pod as somebody else changed it while our own status
	// was on its way: whether that came before or after ours, the answer tells.
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
		// Somebody else changed the status, as the node lifecycle controller
		// does on a node it takes for dead: a kubelet sets it right.
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

// admit takes a pod on that was not known. Like all below that do not take
// k.mu, it is called with it held.
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
	default:
		k.reference(p, spec)
		if k.adopt(p, spec) {
			break
		}
		ready := k.life.clock.Now().Add(k.plan.Spec.PodStart.Median)
		life := k.life
		mount := time.Duration(0)
		if len(tokenRequests(spec)) > 0 {
			mount = volumeLoop + time.Duration(life.float()*float64(volumeLoop))
		}
		life.after(mount, func() { k.startPod(life, p, spec, ready) })
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
		k.report(p, spec)
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

// startPod does what comes before the containers run: the tokens of its
// service account, and the simulated start.
func (k *kubelet) startPod(life *life, p *pod, spec *corev1.Pod, ready time.Time) {
	for _, request := range tokenRequests(spec) {
		for failures := 1; ; failures++ {
			if !k.in(p, starting) {
				return
			}
			if k.requestToken(life.ctx, spec, request) == nil {
				break
			}
			if !life.wait(life.ctx, life.backoff(podBackoff, podBackoffMax, failures)) {
				return
			}
		}
	}
	write := func() { life.writes.add(func() { k.writeRunning(life, p, spec, 0) }) }
	if left := ready.Sub(life.clock.Now()); left > 0 {
		life.after(left, write)
		return
	}
	write()
}

func (k *kubelet) in(p *pod, s podState) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return p.state == s && k.pods[p.uid] == p
}

// writeRunning reports a pod's containers as running, and Ready.
func (k *kubelet) writeRunning(life *life, p *pod, spec *corev1.Pod, failures int) {
	k.mu.Lock()
	if k.pods[p.uid] != p || p.state > running {
		k.mu.Unlock()
		return
	}
	if !p.ip.IsValid() && !spec.Spec.HostNetwork {
		p.ip, _ = k.ips.take()
	}
	ip := p.ip
	k.mu.Unlock()
	again := func() {
		life.after(life.backoff(podBackoff, podBackoffMax, failures+1), func() {
			life.writes.add(func() { k.writeRunning(life, p, spec, failures+1) })
		})
	}
	if !ip.IsValid() && !spec.Spec.HostNetwork {
		k.plan.Log("node %s: no pod address is left for %s/%s", k.name, p.namespace, p.name)
		again()
		return
	}
	version, err := k.patchPodStatus(life.ctx, p, runningStatus(spec, ip, k.hostIP, life.clock.Now()))
	switch {
	case gone(err):
		return // the watch tells, or has told
	case err != nil:
		if !life.over() {
			again()
		}
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	p.version = version
	if !p.counted {
		p.counted = true
		k.ledger.podsStarted.Add(1)
	}
	if p.state == starting && k.pods[p.uid] == p {
		p.state = running
		k.ledger.podsRunning.Add(1)
	}
	overtaken := p.overtaken
	p.overtaken = nil
	if v, err := scan(overtaken, podLayout()); err == nil && p.state == running && number(string(v.version)) > version {
		k.repair(p, overtaken)
	}
}

// repair writes the status again that somebody else changed.
func (k *kubelet) repair(p *pod, object []byte) {
	if spec := k.decodePod(object); spec != nil {
		p.version = number(spec.ResourceVersion) // one write for one change
		k.report(p, spec)
	}
}

func (k *kubelet) report(p *pod, spec *corev1.Pod) {
	life := k.life
	life.writes.add(func() { k.writeRunning(life, p, spec, 0) })
}

func (k *kubelet) stop(p *pod, object []byte) {
	if spec := k.decodePod(object); spec != nil {
		k.stopDecoded(p, spec)
	}
}

func (k *kubelet) stopDecoded(p *pod, spec *corev1.Pod) {
	if p.state == running {
		k.ledger.podsRunning.Add(-1)
	}
	p.state = stopping
	k.dereference(p)
	life := k.life
	life.writes.add(func() { k.terminate(life, p, spec, finished(spec.Status.Phase), 0) })
}

// terminate reports a pod's containers as ended and then removes the pod. The
// simulated containers stop at once, within any grace period; a kubelet
// likewise does not wait for its end when they do.
func (k *kubelet) terminate(life *life, p *pod, spec *corev1.Pod, reported bool, failures int) {
	if !k.in(p, stopping) {
		return
	}
	var err error
	if !reported {
		_, err = k.patchPodStatus(life.ctx, p, terminatedStatus(spec, life.clock.Now()))
		reported = err == nil
	}
	if err == nil {
		err = k.deletePod(life.ctx, p)
	}
	switch {
	case gone(err):
	case err != nil && !life.over():
		life.after(life.backoff(podBackoff, podBackoffMax, failures+1), func() {
			life.writes.add(func() { k.terminate(life, p, spec, reported, failures+1) })
		})
	case err == nil:
		k.ledger.podsStopped.Add(1)
	}
}

// forget lets go of a pod that is no more.
func (k *kubelet) forget(p *pod) {
	if p == nil {
		return
	}
	delete(k.pods, p.uid)
	if p.ip.IsValid() {
		k.ips.release(p.ip)
	}
	k.dereference(p)
	if p.state == running { // deleted with no grace: its end was not ours
		k.ledger.podsRunning.Add(-1)
		k.ledger.podsStopped.Add(1)
	}
}

// gone tells that a pod is no more, or another of its name has its place
// (failed uid precondition).
func gone(err error) bool { return apierrors.IsNotFound(err) || apierrors.IsConflict(err) }

func podPath(namespace, name string) string {
	return "/api/v1/namespaces/" + namespace + "/pods/" + name
}

// patchPodStatus is a kubelet's strategic merge patch with the uid as its
// precondition. It returns the pod's new resourceVersion.
func (k *kubelet) patchPodStatus(ctx context.Context, p *pod, status *corev1.PodStatus) (uint64, error) {
	body, err := statusPatch(p.uid, status)
	if err != nil {
		return 0, err
	}
	answer, err := k.link.do(ctx, call{
		verb: "patch", resource: "pods/status", method: http.MethodPatch, path: podPath(p.namespace, p.name) + "/status",
		contentType: strategic, body: body,
	})
	if err != nil {
		return 0, err
	}
	k.ledger.statusWrites.Add(1)
	raw, err := wire.Unwrap(answer)
	if err != nil {
		return 0, err
	}
	v, err := scan(raw, layout{})
	return number(string(v.version)), err
}

// deletePod is a kubelet's last word on a pod.
func (k *kubelet) deletePod(ctx context.Context, p *pod) error {
	body, err := encode("v1", "DeleteOptions", &metav1.DeleteOptions{
		GracePeriodSeconds: new(int64), Preconditions: metav1.NewUIDPreconditions(string(p.uid)),
	})
	if err != nil {
		return err
	}
	_, err = k.link.do(ctx, call{
		verb: "delete", resource: "pods", method: http.MethodDelete, path: podPath(p.namespace, p.name),
		contentType: wire.ContentType, body: body,
	})
	return err
}
