package node

import (
	"time"

	corev1 "k8s.io/api/core/v1"
)

// images are those of one node. Each is pulled once, one after the other (serializeImagePulls). They outlive the
// kubelet's restart.
type images struct {
	ready map[string]time.Time
	free  time.Time // when the last pull that was asked for ends
}

// need returns when an image will be on the node, and whether it is not yet. takes is asked once per image.
func (s *images) need(image string, now time.Time, takes func() time.Duration) (at time.Time, pulling bool) {
	at, known := s.ready[image]
	if !known {
		at = now
		if d := takes(); d > 0 {
			if s.free.After(at) {
				at = s.free
			}
			at = at.Add(d)
			s.free = at
		}
		if s.ready == nil {
			s.ready = map[string]time.Time{}
		}
		s.ready[image] = at
	}
	return at, at.After(now)
}

// imagesOf a pod, in the order in which a kubelet starts its containers.
func imagesOf(pod *corev1.Pod) []string {
	var out []string
	for _, containers := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range containers {
			out = append(out, containers[i].Image)
		}
	}
	return out
}

// pullImages returns when the last of a pod's images will be there, and which containers wait for a pull.
func (k *kubelet) pullImages(pod *corev1.Pod, now time.Time) (at time.Time, pulled []bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	at = now
	for _, image := range imagesOf(pod) {
		there, pulling := k.images.need(image, now, func() time.Duration {
			return k.plan.Spec.ImagePull.At(draw(k.plan.Seed, "image", k.name, image))
		})
		if there.After(at) {
			at = there
		}
		pulled = append(pulled, pulling)
	}
	return at, pulled
}
