package node

import (
	"bytes"
	"context"
	"fmt"
	"net/netip"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/stormglass/stormglass/loadgen/internal/apiclient/protobuf"
)

// podBackoff and podBackoffMax are a kubelet's first and longest wait between attempts to request a pod's token or to
// write a pod's status.
const (
	podBackoff    = 500 * time.Millisecond
	podBackoffMax = 10 * time.Second
	// volumeLoop is the interval of a kubelet's volume manager, which mounts a volume in its second round
	// (pkg/kubelet/volumemanager). The API server often refuses an earlier request, because the Node authorizer has not
	// seen the pod's binding yet.
	volumeLoop = 100 * time.Millisecond
	// firstLook is the approximate time from a pod's first event to the kubelet's first request about the pod. The API
	// server often refuses an earlier request, because the Node authorizer has not seen the pod's binding yet.
	firstLook = 50 * time.Millisecond
	// unmountMin and unmountMax bound the time from the end of a pod's containers until the kubelet unmounts its
	// volumes, as measured on a real kubelet.
	unmountMin, unmountMax = 200 * time.Millisecond, 800 * time.Millisecond
	// The nodes read one of every rereadEvery ended pods once more. A real kubelet reads an ended pod again if it sends
	// the last two updates of the pod's status separately. 0 to 0.4 additional reads per pod were measured.
	rereadEvery = 5
)

type podState uint8

const (
	starting   podState = iota
	backingOff          // no container runs; the lifecycle restarts containers later
	running
	stopping
	ended // the pod's phase is Succeeded or Failed
)

// pod is the state that a simulated kubelet keeps about a pod.
type pod struct {
	namespace, name string
	uid             types.UID
	state           podState
	ip              netip.Addr // address from the node's range; invalid before the start and with hostNetwork
	hostNetwork     bool
	version         uint64 // resourceVersion of the pod after this kubelet's last status write
	generation      int64  // metadata.generation as last seen
	room            *room  // resources that the pod uses; nil after its containers have stopped
	counted         bool   // whether the pod's start was counted in the results
	listing         uint32 // number of the newest list of pods that contained the pod
	refs            []objectRef
	object          []byte     // the encoded pod as last seen; kept only for the kubelet API
	lifecycle       *lifecycle // nil if the containers start and keep running
	ephemeral       []corev1.ContainerStatus
	// overtaken is the encoded pod after another client changed it during the pod's start. Nil means no such change.
	overtaken []byte
}

// begin marks the start of a new list of pods. The methods begin, event and listed form the sink of the pod watch.
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
	p := k.pods[types.UID(v.UID)]
	switch {
	case kind == "DELETED":
		k.forget(p)
		return
	case p == nil:
		p = k.admit(object, v)
	case v.Deleting && p.state < stopping: // the API server itself removes pods that have ended
		k.stop(p, object)
	case p.lifecycle != nil && v.Deleting && p.state == ended:
		p.lifecycle.sawDeletion(object)
	case p.lifecycle != nil:
		p.lifecycle.saw(object, v)
	case p.state == running && string(v.ready) != "True" && number(string(v.ResourceVersion)) > p.version:
		// The node lifecycle controller changes the status of pods on a node that it considers dead.
		k.repair(p, object)
	case p.state == starting && string(v.ready) != "True":
		p.overtaken = bytes.Clone(object)
	}
	if p != nil {
		k.ledger.unready.saw(p.uid, p.state < stopping && string(v.ready) != "True", k.life.clock.Now())
		p.listing = k.listing
		if v.Generation != p.generation && p.state < stopping {
			k.respec(p, object)
		}
		if k.plan.API != nil {
			p.object = bytes.Clone(object)
		}
	}
}

// respec processes a changed pod spec: it records new resource requests and starts new ephemeral containers.
func (k *kubelet) respec(p *pod, object []byte) {
	if spec := k.decodePod(object); spec != nil {
		p.generation, p.room = spec.Generation, roomOf(spec)
		if p.lifecycle != nil {
			p.lifecycle.model.pod.Generation = spec.Generation
		}
		k.startEphemeral(p, spec)
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

// admit adds a pod that the kubelet has not seen before, and starts, adopts or rejects it. The caller holds k.mu.
func (k *kubelet) admit(object []byte, v view) *pod {
	spec := k.decodePod(object)
	if spec == nil {
		return nil
	}
	p := &pod{
		namespace: spec.Namespace, name: spec.Name, uid: spec.UID, listing: k.listing, hostNetwork: spec.Spec.HostNetwork,
		generation: spec.Generation, ephemeral: slices.Clone(spec.Status.EphemeralContainerStatuses),
	}
	k.pods[p.uid] = p
	switch {
	case v.Deleting:
		k.stopDecoded(p, spec)
	case finished(spec.Status.Phase):
		p.state = ended
	case k.state == shuttingDown:
		p.state = ended
		k.reject(p, spec)
	case len(k.pressures) > 0 && spec.Status.Phase != corev1.PodRunning && k.refused(p, spec):
	case !k.fits(p, spec):
	default:
		if of := k.plan.lifeOf(spec); of != nil {
			p.lifecycle = k.newLifecycle(p, spec, of)
		}
		k.reference(p, spec)
		if !k.adopt(p, spec) {
			k.begins(p, spec)
		}
		k.startEphemeral(p, spec)
	}
	return p
}

// adopt takes over a pod that was running before this kubelet started. It returns false if the pod is not Running, or
// if its IP address is not a free address of this node. The caller holds k.mu.
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
	if p.lifecycle != nil {
		p.lifecycle.adopt()
		return true
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

func (k *kubelet) stop(p *pod, object []byte) {
	if spec := k.decodePod(object); spec != nil {
		k.stopDecoded(p, spec)
	}
}

// until calls the function `try` repeatedly while a pod is starting. `try` returns 0 on success, and otherwise the wait
// before the next call. until returns false if the pod's start or the life ends before `try` succeeds.
func (k *kubelet) until(life *life, p *pod, try func() time.Duration) bool {
	for k.in(p, starting) {
		wait := try()
		if wait == 0 {
			return true
		}
		if !life.wait(life.ctx, wait) {
			return false
		}
	}
	return false
}

// remove deletes a pod from the API server after the pod's containers have stopped.
func (k *kubelet) remove(life *life, p *pod) {
	k.persist(life, func() error {
		if !k.in(p, stopping) {
			return nil
		}
		if err := k.readPod(life.ctx, p); err != nil {
			return err
		}
		return k.deletePod(life, p)
	})
}

// unmount unmounts a pod's simulated volumes and then calls the function `then`. With fidelity "kubelet", if the pod
// has volumes, it first waits for unmountMin to unmountMax and for earlier status writes.
func (k *kubelet) unmount(life *life, p *pod, spec *corev1.Pod, then func()) {
	unmounted := func() {
		k.mu.Lock()
		if k.pods[p.uid] == p { // false if the pod is gone or the node has failed
			k.dereference(p)
		}
		k.mu.Unlock()
		then()
	}
	if !k.plan.everyRequest() || len(spec.Spec.Volumes) == 0 {
		unmounted()
		return
	}
	takes := unmountMin + time.Duration(life.float()*float64(unmountMax-unmountMin))
	life.after(takes, func() {
		k.write(life, func() {
			if k.fleet.unmounted.Add(1)%rereadEvery == 0 {
				_ = k.readPod(life.ctx, p) // errors are counted
			}
			unmounted()
		})
	})
}

// persist calls `write`, which writes a pod's status or deletes the pod. If `write` fails, persist queues it again
// after a back-off that grows with the number of failures, until `write` succeeds, the pod is gone or the life is over.
func (k *kubelet) persist(life *life, write func() error) { k.try(life, write, 1) }

func (k *kubelet) try(life *life, write func() error, number int) {
	if err := write(); err != nil && !gone(err) && !life.over() {
		life.after(life.backoff(podBackoff, podBackoffMax, number), func() {
			k.write(life, func() { k.try(life, write, number+1) })
		})
	}
}

func (k *kubelet) forget(p *pod) {
	if p == nil {
		return
	}
	delete(k.pods, p.uid)
	k.ledger.unready.saw(p.uid, false, time.Time{})
	k.ledger.held.saw(p.uid, false, time.Time{})
	if p.ip.IsValid() {
		k.ips.release(p.ip)
	}
	k.dereference(p)
	if p.lifecycle != nil {
		p.lifecycle.cancel()
	}
	if p.state == running { // the pod was deleted without a grace period, so the node did not stop it
		k.ledger.podsRunning.Add(-1)
		k.ledger.podsStopped.Add(1)
	}
}

// gone reports whether err means that a pod was deleted, or replaced by another pod with the same name (failed UID
// precondition).
func gone(err error) bool { return apierrors.IsNotFound(err) || apierrors.IsConflict(err) }

func (p *pod) path() string { return "/api/v1/namespaces/" + p.namespace + "/pods/" + p.name }

// write queues job, which writes a pod's status. On a slow node it queues the job only after the node's delay.
func (k *kubelet) write(life *life, job func()) {
	k.late(life, func() { life.writes.add(job) })
}

// queue queues `write`, and retries it after errors as persist does.
func (k *kubelet) queue(life *life, write func() error) {
	k.write(life, func() { k.persist(life, write) })
}

// patchPodStatus writes a pod's status and returns the pod's new resourceVersion.
func (k *kubelet) patchPodStatus(ctx context.Context, p *pod, status *corev1.PodStatus) (uint64, error) {
	if finished(status.Phase) {
		status.EphemeralContainerStatuses = k.endEphemeral(p)
	}
	body, err := wholeStatusPatch(p.uid, status)
	if err != nil {
		return 0, err
	}
	return k.readAndPatch(ctx, p, body)
}

// readAndPatch patches a pod's status. With fidelity "kubelet" it first reads the pod, as a kubelet's status manager
// does.
func (k *kubelet) readAndPatch(ctx context.Context, p *pod, body []byte) (uint64, error) {
	if err := k.readPod(ctx, p); err != nil {
		return 0, err
	}
	return k.patchStatusOf(ctx, p, body)
}

// get reads the object at path and decodes it into `into`. resource names the object's resource in metrics and errors.
func (k *kubelet) get(ctx context.Context, resource, path string, into unmarshaler) error {
	answer, err := k.link.do(ctx, call{verb: "get", resource: resource, path: path})
	if err != nil {
		return err
	}
	if err := decode(answer, into); err != nil {
		return fmt.Errorf("get %s: decode the response: %w", resource, err)
	}
	return nil
}

func (k *kubelet) readPod(ctx context.Context, p *pod) error {
	if !k.plan.everyRequest() {
		return nil
	}
	_, err := k.link.do(ctx, call{verb: "get", resource: "pods", path: p.path()})
	return err
}

func (k *kubelet) patchStatusOf(ctx context.Context, p *pod, body []byte) (uint64, error) {
	answer, err := k.link.do(ctx, call{
		verb: "patch", resource: "pods/status", path: p.path() + "/status", body: body,
	})
	if err != nil {
		return 0, err
	}
	k.ledger.statusWrites.Add(1)
	raw, err := protobuf.Unwrap(answer)
	if err != nil {
		return 0, err
	}
	v, err := scan(raw, layout{})
	return number(string(v.ResourceVersion)), err
}

// deletePod deletes a pod with a grace period of 0, as a kubelet does after the containers have stopped, and counts the
// pod as stopped.
func (k *kubelet) deletePod(life *life, p *pod) error {
	body, err := encode("v1", "DeleteOptions", &metav1.DeleteOptions{
		GracePeriodSeconds: new(int64), Preconditions: metav1.NewUIDPreconditions(string(p.uid)),
	})
	if err != nil {
		return err
	}
	if _, err = k.link.do(life.ctx, call{verb: "delete", resource: "pods", path: p.path(), body: body}); err != nil {
		return err
	}
	k.ledger.podsStopped.Add(1)
	k.mu.Lock()
	defer k.mu.Unlock()
	k.ledger.held.saw(p.uid, k.pods[p.uid] == p, life.clock.Now())
	return nil
}
