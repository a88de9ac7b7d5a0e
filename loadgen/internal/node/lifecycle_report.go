package node

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// settle sets the pod's state to running if a regular container runs, and to backingOff otherwise. It does nothing
// until the API server has acknowledged the start of the containers.
func (l *lifecycle) settle() {
	if !l.p.counted {
		return
	}
	runs := false
	for i := range l.model.containers {
		c := &l.model.containers[i]
		runs = runs || c.kind == regular && c.state.Running != nil
	}
	if runs {
		l.become(running)
	} else {
		l.become(backingOff)
	}
}

// become sets the pod's state and updates the count of running pods.
func (l *lifecycle) become(s podState) {
	switch {
	case s == running && l.p.state != running:
		l.k.ledger.podsRunning.Add(1)
	case s != running && l.p.state == running:
		l.k.ledger.podsRunning.Add(-1)
	}
	if l.p.state = s; s == ended {
		l.p.room = nil
	}
}

func (l *lifecycle) render() *corev1.PodStatus {
	s := l.model.status(l.p.ip, l.k.hostIP, l.now())
	l.ready = isReady(l.model.pod)
	return s
}

// report queues a write of the current status. With fidelity "kubelet" the node writes every queued status. Otherwise
// it skips a status if a newer status is queued behind it.
func (l *lifecycle) report() {
	l.version++
	l.write(l.version, l.render())
}

// write queues a write of a status. It skips the write if a newer status replaces this one (see report). After an error
// it repeats the write, unless there is a newer status.
func (l *lifecycle) write(version uint64, status *corev1.PodStatus) {
	k, failed := l.k, false
	k.queue(l.life, func() error {
		k.mu.Lock()
		there := k.pods[l.p.uid] == l.p && (l.p.state < stopping || l.p.state == ended && l.ended)
		old := version < l.version && (failed || !k.plan.everyRequest())
		k.mu.Unlock()
		if !there || old {
			return nil
		}
		at, err := k.patchPodStatus(l.life.ctx, l.p, status)
		if failed = err != nil; failed {
			return err // if the pod is gone, the watch delivers the deletion
		}
		l.wrote(version, at)
		return nil
	})
}

// wrote records that the API server acknowledged a status. `at` is the pod's resourceVersion afterwards.
func (l *lifecycle) wrote(version, at uint64) {
	l.k.mu.Lock()
	defer l.k.mu.Unlock()
	l.p.version, l.acked = at, version
	if l.ran && !l.p.counted {
		l.p.counted = true
		l.k.ledger.podsStarted.Add(1)
		if l.p.state == starting {
			l.settle()
		}
	}
	l.check()
}

// saw processes a watch event about the pod.
func (l *lifecycle) saw(object []byte, v view) {
	if l.p.state >= stopping {
		return
	}
	l.seenVersion, l.seenReady = number(string(v.ResourceVersion)), string(v.ready) == "True"
	if len(l.model.pod.Spec.ReadinessGates) > 0 {
		if spec := l.k.decodePod(object); spec != nil {
			open := gatesOpen(l.model.pod)
			start := l.model.pod.Status.StartTime
			l.model.take(spec)
			l.model.pod.Status.StartTime = start
			if gatesOpen(spec) != open && l.begun {
				l.report()
				return
			}
		}
	}
	l.check()
}

// check reports the status again if another client has changed the condition Ready. For example, the node lifecycle
// controller marks the pods of a node not Ready if it considers the node dead.
func (l *lifecycle) check() {
	if l.begun && l.acked == l.version && l.seenVersion > l.p.version && l.seenReady != l.ready && l.p.state < stopping {
		l.report()
	}
}

// adopt takes over a pod that was running before this kubelet started. As after a restart of a real kubelet, the pod's
// back-offs start from zero.
func (l *lifecycle) adopt() {
	pod := l.model.pod
	l.begun, l.ran, l.p.counted = true, true, true
	for i := range l.model.containers {
		c := &l.model.containers[i]
		for _, s := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
			if s.Name == c.spec.Name {
				last := s.LastTerminationState.Terminated
				switch {
				case s.State.Running != nil || s.State.Terminated != nil:
					c.state, c.last = s.State, last
				case last != nil: // the container was backing off
					c.state = corev1.ContainerState{Terminated: last}
				}
				c.restarts, c.ready, c.started = s.RestartCount, s.Ready, s.Started != nil && *s.Started
			}
		}
		c.failures = int(c.restarts)
	}
	l.settle()
	wasReady := isReady(pod)
	if l.render(); l.ready != wasReady {
		l.report()
	}
	now := l.now()
	for i := range l.model.containers {
		c := &l.model.containers[i]
		switch exited := c.state.Terminated; {
		case c.state.Running != nil:
			l.arm(i, max(0, now.Sub(c.state.Running.StartedAt.Time)))
		case exited != nil && c.kind != initial && l.model.restarts(c, exited.ExitCode):
			l.restart(i)
		}
	}
	if l.model.over() {
		l.finish()
		return
	}
	if since := pod.Status.StartTime; since != nil {
		l.armEviction(now.Sub(since.Time))
	}
}
