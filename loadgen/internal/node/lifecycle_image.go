package node

import (
	"fmt"
	"strconv"

	corev1 "k8s.io/api/core/v1"
)

// pull starts the regular containers, once their images can be pulled.
func (l *lifecycle) pull() {
	var all, failing []int
	for i := range l.model.containers {
		c := &l.model.containers[i]
		if c.kind != regular {
			continue
		}
		all = append(all, i)
		if l.concerns(c) {
			failing = append(failing, i)
		}
	}
	fails := l.drawn(l.of.ImagePullErrorFor, -1, "image pull")
	if len(failing) > 0 && (fails >= never || l.now().Before(l.model.pod.Status.StartTime.Add(fails))) {
		l.pullFails(failing)
		return
	}
	l.launch(all...)
}

// pullFails reports that images cannot be pulled. A kubelet looks at the pod again once it has seen its sandbox, and
// then about every 10 s: it tries again where the image's back-off is over.
func (l *lifecycle) pullFails(failing []int) {
	changed := false
	for _, i := range failing {
		changed = l.tryImage(&l.model.containers[i]) || changed
	}
	if changed {
		l.report()
	}
	l.looks++
	next := requeued(backOffFirst, draw(l.k.plan.Seed, "image pull", l.p.namespace, l.p.name, strconv.Itoa(l.looks)))
	if l.looks == 1 {
		next = noticed
	}
	l.after(timerKey{-1, pulls}, next, l.pull)
}

// tryImage is a kubelet's attempt at an image that it does not get. It reports whether the container's status changed.
func (l *lifecycle) tryImage(c *containerState) (changed bool) {
	was := ""
	if c.state.Waiting != nil {
		was = c.state.Waiting.Reason
	}
	now := l.now()
	reason := "ErrImagePull"
	switch {
	case c.spec.ImagePullPolicy == corev1.PullNever:
		reason = "ErrImageNeverPull"
		message := fmt.Sprintf("Container image %q is not present with pull policy of Never", c.spec.Image)
		l.announce(c, corev1.EventTypeWarning, reason, message)
		l.wait(c, reason, message)
	case now.Before(c.pulls.updated.Add(c.pulls.delay)):
		reason = "ImagePullBackOff"
		message := fmt.Sprintf("Back-off pulling image %q", c.spec.Image)
		l.announce(c, corev1.EventTypeNormal, "BackOff", message)
		l.wait(c, reason, message+": ErrImagePull: "+absentImage(c))
	default:
		l.count(lifeImagePullFailed)
		c.pulled = true // when it is
		c.pulls.next(now, now, imageBackOff)
		l.announce(c, corev1.EventTypeNormal, "Pulling", fmt.Sprintf("Pulling image %q", c.spec.Image))
		l.announce(c, corev1.EventTypeWarning, "Failed", fmt.Sprintf("Failed to pull image %q: %s", c.spec.Image, absentImage(c)))
		l.wait(c, reason, absentImage(c))
	}
	l.announce(c, corev1.EventTypeWarning, "Failed", "Error: "+reason)
	return reason != was
}

func absentImage(c *containerState) string {
	return fmt.Sprintf("image %q is not found: simulated by stormglass", c.spec.Image)
}
