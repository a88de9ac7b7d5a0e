package node

import (
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

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
	if p.counted {
		k.announceEvents(life, spec, killingEvents(spec))
	}
	k.write(life, func() { k.terminate(life, p, spec, finished(spec.Status.Phase), 0) })
}

// terminate reports a pod's containers as ended, at once within any grace period, and then removes the pod.
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
			k.write(life, func() { k.terminate(life, p, spec, reported, failures+1) })
		})
	case err == nil:
		k.ledger.podsStopped.Add(1)
	}
}

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

// gone reports whether a pod is deleted or replaced (failed uid precondition).
func gone(err error) bool { return apierrors.IsNotFound(err) || apierrors.IsConflict(err) }
