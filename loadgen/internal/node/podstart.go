package node

import (
	"errors"
	"net/netip"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// begins starts a pod that was just bound to the node. The caller holds k.mu.
func (k *kubelet) begins(p *pod, spec *corev1.Pod) {
	life := k.life
	now := life.clock.Now()
	starts := now.Add(k.plan.Spec.PodStart.At(draw(k.plan.Seed, "pod", spec.Namespace, spec.Name)))
	tokens, err := tokensOf(spec)
	if err != nil {
		k.plan.Log("node %s: pod %s/%s: %v", k.name, p.namespace, p.name, err)
		return
	}
	mount := time.Duration(0)
	if len(tokens) > 0 {
		mount = volumeLoop + time.Duration(life.float()*float64(volumeLoop)) + time.Duration(k.delay.Load())
	}
	look := time.Duration(0)
	if k.plan.everyRequest() {
		look = firstLook
	}
	life.after(look, func() {
		if !k.selects(life, p, spec) {
			return
		}
		// Report the waiting containers. With fidelity "shared", do so only if the start takes time.
		if k.plan.own() || starts.After(now) || k.plan.Spec.ImagePull.Median > 0 {
			k.write(life, func() { k.writeCreating(life, p, spec) })
		}
		life.after(mount, func() { k.startPod(life, p, spec, tokens, starts) })
	})
}

// startPod simulates the start of a pod: it fetches tokens, mounts volumes, prepares claims, pulls images and waits for
// the ConfigMaps and Secrets of environment variables. The containers start at the later of `starts` and now, plus the
// duration of the image pulls.
func (k *kubelet) startPod(life *life, p *pod, spec *corev1.Pod, tokens []token, starts time.Time) {
	for _, t := range tokens {
		if !k.fetchToken(life, p, t) {
			return
		}
	}
	if !k.mountVolumes(life, p, spec) || !k.prepareClaims(life, p, spec) {
		return
	}
	if k.plan.everyRequest() {
		k.write(life, func() { k.writeSandbox(life, p) })
	}
	now := life.clock.Now()
	wait := max(0, starts.Sub(now))
	there, pulled := k.pullImages(spec, now)
	k.announceEvents(life, spec, pullingEvents(spec, pulled))
	life.after(wait+there.Sub(now), func() {
		if !k.configure(life, p, spec) {
			return
		}
		if p.lifecycle != nil {
			p.lifecycle.begin(spec, pulled)
			return
		}
		k.announceEvents(life, spec, startEvents(spec, pulled))
		k.writeSteps(life, p, startSteps(spec))
		k.report(life, p, spec)
	})
}

// starts reports whether the node still reports the steps of a pod's start. It does while the pod starts, and after the
// pod's containers have ended by themselves.
func (k *kubelet) starts(p *pod) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.pods[p.uid] == p && (p.state == starting || p.lifecycle != nil && p.lifecycle.ended && p.state == ended)
}

// writeCreating reports that a pod's containers are waiting. It does not retry a failed write, because the next report
// replaces this one.
func (k *kubelet) writeCreating(life *life, p *pod, spec *corev1.Pod) {
	if !k.starts(p) {
		return
	}
	status := creatingStatus(spec, k.hostIP, life.clock.Now())
	if version, err := k.patchPodStatus(life.ctx, p, status); err == nil {
		k.mu.Lock()
		p.version = version
		if spec.Status.StartTime == nil {
			spec.Status.StartTime = status.StartTime
		}
		k.mu.Unlock()
	}
}

// writeSandbox reports that a pod's sandbox is ready. It does not retry: the next report includes this one.
func (k *kubelet) writeSandbox(life *life, p *pod) {
	if !k.starts(p) {
		return
	}
	body, err := sandboxPatch(p.uid, life.clock.Now())
	if err == nil {
		_, _ = k.readAndPatch(life.ctx, p, body) // errors are counted
	}
}

// step computes an intermediate status of a pod that is starting.
type step func(ip, host netip.Addr, now time.Time) *corev1.PodStatus

// writeSteps reports each step of a pod's start, with fidelity "kubelet" only. It does not retry failed writes, because
// the next report replaces them.
func (k *kubelet) writeSteps(life *life, p *pod, steps []step) {
	if !k.plan.everyRequest() {
		return
	}
	for _, s := range steps {
		k.write(life, func() {
			ip, ok := k.address(p)
			if ok {
				_, _ = k.patchPodStatus(life.ctx, p, s(ip, k.hostIP, life.clock.Now())) // errors are counted
			}
		})
	}
}

// address returns a pod's IP address, and assigns one if the pod has none. The address is invalid if none is free or if
// the pod uses the host network. ok is false if the pod is gone or stopping.
func (k *kubelet) address(p *pod) (ip netip.Addr, ok bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.pods[p.uid] != p || p.state > running && p.state != ended {
		return ip, false
	}
	if !p.ip.IsValid() && !p.hostNetwork {
		p.ip, _ = k.ips.take()
	}
	return p.ip, true
}

var errNoAddress = errors.New("no free IP address")

func (k *kubelet) writeRunning(life *life, p *pod, spec *corev1.Pod) error {
	ip, ok := k.address(p)
	if !ok || k.in(p, ended) {
		return nil
	}
	if !ip.IsValid() && !spec.Spec.HostNetwork {
		k.plan.Log("node %s: no free IP address for pod %s/%s", k.name, p.namespace, p.name)
		return errNoAddress
	}
	version, err := k.patchPodStatus(life.ctx, p, runningStatus(spec, ip, k.hostIP, life.clock.Now()))
	if err != nil {
		return err // if the pod is gone, the watch delivers the deletion
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
	if v, err := scan(overtaken, podLayout()); err == nil && p.state == running && number(string(v.ResourceVersion)) > version {
		k.repair(p, overtaken)
	}
	return nil
}

func (k *kubelet) repair(p *pod, object []byte) {
	if spec := k.decodePod(object); spec != nil {
		p.version = number(spec.ResourceVersion) // react to each change once
		k.report(k.life, p, spec)
	}
}

func (k *kubelet) report(life *life, p *pod, spec *corev1.Pod) {
	k.queue(life, func() error { return k.writeRunning(life, p, spec) })
}

// images holds the images of one node. Each image is pulled only once, and pulls run one after another
// (serializeImagePulls). Images survive a restart of the kubelet.
type images struct {
	ready map[string]time.Time
	free  time.Time // when the last requested pull ends
}

// need returns the time at which an image is on the node. pulling is true if this time is in the future. If the image
// is unknown, need starts a pull; the function `takes` returns the pull's duration.
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
		s.add(image, at)
	}
	return at, at.After(now)
}

// add records the time at which an image is on the node.
func (s *images) add(image string, at time.Time) {
	if s.ready == nil {
		s.ready = map[string]time.Time{}
	}
	s.ready[image] = at
}

// pullImages starts to pull the images of a pod that the node lacks. It returns the time at which the last image is
// present, and for each container whether it waits for a pull.
func (k *kubelet) pullImages(pod *corev1.Pod, now time.Time) (at time.Time, pulled []bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	at = now
	eachContainer(pod, func(_ int, c *corev1.Container, _ string) {
		there, pulling := k.images.need(c.Image, now, func() time.Duration {
			return k.plan.Spec.ImagePull.At(draw(k.plan.Seed, "image", k.name, c.Image))
		})
		if there.After(at) {
			at = there
		}
		pulled = append(pulled, pulling)
	})
	return at, pulled
}
