package node

import (
	"time"

	corev1 "k8s.io/api/core/v1"
)

const (
	// shutdownGrace is a common shutdownGracePeriod. A kubelet's default is none: that is Fail.
	shutdownGrace = 30 * time.Second
	// statusTries of a node's status (a kubelet's nodeStatusUpdateRetry).
	statusTries = 5
)

// shutdown begins the node's end in order. Containers stop at once.
func (k *kubelet) shutdown() {
	k.mu.Lock()
	defer k.mu.Unlock()
	life := k.life
	if life == nil || life.over() { // the node is not running
		k.silence()
		return
	}
	k.state = shuttingDown
	k.reports = 1
	k.late(life, func() { life.spawn(func() { k.reportShutdown(life, 1) }) })
	for _, p := range k.pods {
		if p.state > running {
			continue
		}
		if p.state == running {
			k.ledger.podsRunning.Add(-1)
		}
		p.state = ended
		k.dereference(p)
		k.reports++
		k.write(life, func() { k.writeShutdown(life, p, 0) })
	}
	// Whatever is not told by then stays untold: the machine is switched off.
	life.after(shutdownGrace, func() { k.leave(life) })
}

// reported counts a report of the shutdown as made; the last ends the life.
func (k *kubelet) reported(life *life) {
	k.mu.Lock()
	k.reports--
	last := k.reports == 0
	k.mu.Unlock()
	if last {
		k.leave(life)
	}
}

func (k *kubelet) reportShutdown(life *life, try int) {
	body, err := readyPatch(life.clock.Now(), notReady("node is shutting down"))
	if err == nil {
		err = k.patchStatus(life, body)
	}
	if err != nil && try < statusTries {
		life.after(life.backoff(registerBackoff, registerBackoffMax, try), func() { k.reportShutdown(life, try+1) })
		return
	}
	k.mu.Lock()
	if !life.over() {
		k.setReady(false)
	}
	k.mu.Unlock()
	k.reported(life)
}

// writeShutdown reads a pod and reports it as failed.
func (k *kubelet) writeShutdown(life *life, p *pod, failures int) {
	spec, err := k.lookAtPod(life, p)
	if err == nil && spec.UID == p.uid && !finished(spec.Status.Phase) {
		k.announceEvents(life, spec, killingEvents(spec))
		_, err = k.patchPodStatus(life.ctx, p, shutdownStatus(spec, life.clock.Now()))
	}
	if err != nil && !gone(err) {
		life.after(life.backoff(podBackoff, podBackoffMax, failures+1), func() {
			k.write(life, func() { k.writeShutdown(life, p, failures+1) })
		})
		return
	}
	k.reported(life)
}

func (k *kubelet) lookAtPod(life *life, p *pod) (*corev1.Pod, error) {
	answer, err := k.link.do(life.ctx, getPod(p))
	if err != nil {
		return nil, err
	}
	spec := &corev1.Pod{}
	return spec, decode(answer, spec)
}

// reject refuses a pod that comes to a node that shuts down. Called with k.mu held.
func (k *kubelet) reject(p *pod, spec *corev1.Pod) {
	life := k.life
	k.reports++
	k.write(life, func() {
		_, _ = k.patchPodStatus(life.ctx, p, rejectedStatus(spec, life.clock.Now())) // counted; the node is nearly gone
		k.reported(life)
	})
}
