package node

import (
	"fmt"
	"strconv"

	corev1 "k8s.io/api/core/v1"
)

// pull starts the regular containers whose images are present, and tries to pull the missing images. A kubelet syncs
// the pod again when it sees the sandbox, and then about every 10 s. Each sync reports why the previous pulls failed.
func (l *lifecycle) pull() {
	fails := l.drawn(l.of.ImagePullErrorFor, -1, "image pull")
	absent := fails >= never || l.now().Before(l.model.pod.Status.StartTime.Add(fails))
	var there, failing []int
	changed := false
	for i := range l.model.containers {
		c := &l.model.containers[i]
		switch {
		case c.kind != regular || c.ran():
			continue
		case absent && l.concerns(c):
			failing = append(failing, i)
		default:
			there = append(there, i)
		}
		changed = changed || c.failing != nil && c.shown != c.failing.Reason
	}
	if changed {
		l.report()
	}
	if len(there) > 0 {
		l.launch(there...)
	}
	if len(failing) == 0 {
		return
	}
	for _, i := range failing {
		l.tryImage(&l.model.containers[i])
	}
	next := noticed
	if l.looks++; l.looks > 1 {
		next = requeued(backOffFirst, draw(l.k.plan.Seed, "image pull", l.p.namespace, l.p.name, strconv.Itoa(l.looks)))
	}
	l.after(timerKey{-1, pulls}, next, l.pull)
}

// tryImage simulates a kubelet's failed attempt to pull an image.
func (l *lifecycle) tryImage(c *containerState) {
	now := l.now()
	reason, message := "ErrImagePull", absentImage(c)
	switch {
	case c.spec.ImagePullPolicy == corev1.PullNever:
		reason, message = "ErrImageNeverPull", fmt.Sprintf("Container image %q is not present with pull policy of Never", c.spec.Image)
		l.announce(c, corev1.EventTypeWarning, reason, message)
	case now.Before(c.pulls.updated.Add(c.pulls.delay)):
		back := fmt.Sprintf("Back-off pulling image %q", c.spec.Image)
		l.announce(c, corev1.EventTypeNormal, "BackOff", back)
		reason, message = "ImagePullBackOff", back+": "+reason+": "+message
	default:
		l.count(lifeImagePullFailed)
		c.pulled = true // the container starts only after a successful pull
		c.pulls.next(now, now, imageBackOff)
		l.announce(c, corev1.EventTypeNormal, "Pulling", fmt.Sprintf("Pulling image %q", c.spec.Image))
		l.announce(c, corev1.EventTypeWarning, "Failed", fmt.Sprintf("Failed to pull image %q: %s", c.spec.Image, message))
	}
	c.failing = &corev1.ContainerStateWaiting{Reason: reason, Message: message}
	l.announce(c, corev1.EventTypeWarning, "Failed", "Error: "+reason)
}

func absentImage(c *containerState) string {
	return fmt.Sprintf("image %q is not found: simulated by stormglass", c.spec.Image)
}
