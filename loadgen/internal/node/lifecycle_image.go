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

// pullFails reports that images cannot be pulled, and tries again after a kubelet's back-off.
func (l *lifecycle) pullFails(failing []int) {
	now := l.now()
	l.pullsFailed++
	jitter := draw(l.k.plan.Seed, "image pull", l.p.namespace, l.p.name, strconv.Itoa(l.pullsFailed))
	for _, i := range failing {
		c := &l.model.containers[i]
		l.count(lifeImagePullFailed)
		c.pulled = true // when it is
		c.pulls.next(now, now, imageBackOff)
		cause := fmt.Sprintf("image %q is not found: simulated by stormglass", c.spec.Image)
		l.wait(c, "ErrImagePull", cause)
		l.announce(c, corev1.EventTypeNormal, "Pulling", fmt.Sprintf("Pulling image %q", c.spec.Image))
		l.announce(c, corev1.EventTypeWarning, "Failed", fmt.Sprintf("Failed to pull image %q: %s", c.spec.Image, cause))
		l.announce(c, corev1.EventTypeWarning, "Failed", "Error: ErrImagePull")
		backing := fmt.Sprintf("Back-off pulling image %q", c.spec.Image)
		l.after(timerKey{i, backsOff}, min(backOffFirst, c.pulls.delay/2), func() {
			l.wait(c, "ImagePullBackOff", backing+": ErrImagePull: "+cause)
			l.announce(c, corev1.EventTypeNormal, "BackOff", backing)
			l.announce(c, corev1.EventTypeWarning, "Failed", "Error: ImagePullBackOff")
			l.report()
		})
		l.after(timerKey{-1, pulls}, requeued(c.pulls.delay, jitter), l.pull)
	}
	l.report()
}
