package node

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
)

const (
	// mountBackoffMax is a kubelet's longest wait between attempts to mount a volume (pkg/util/goroutinemap).
	mountBackoffMax = 2*time.Minute + 2*time.Second
	// clusterCA is the ConfigMap with the CA of the API server. The controller manager creates it in each namespace.
	clusterCA = "kube-root-ca.crt"
)

// mountVolumes waits until each ConfigMap and Secret that the pod's volumes need exists, and each PersistentVolumeClaim
// is bound. It returns false if the pod ended first. On a restricted node it returns true without a check.
func (k *kubelet) mountVolumes(life *life, p *pod, pod *corev1.Pod) bool {
	if k.plan.restricted() {
		return true
	}
	failures := 0
	return k.until(life, p, func() time.Duration {
		message, known := k.unmountable(life.ctx, pod)
		switch {
		case !known:
			return volumeLoop
		case message == "":
			return 0
		}
		k.announceWarning(life, pod, "FailedMount", message)
		failures++
		return life.backoff(podBackoff, mountBackoffMax, failures)
	})
}

// configure waits until each ConfigMap and Secret that the pod's environment variables need exists. Meanwhile, it
// reports CreateContainerConfigError for the containers that lack an object. It returns false if the pod ended first.
// On a restricted node it returns true without a check. Unlike a kubelet, it does not check keys, and starts no
// container before all objects exist.
func (k *kubelet) configure(life *life, p *pod, pod *corev1.Pod) bool {
	if k.plan.restricted() {
		return true
	}
	var reported map[string]string
	return k.until(life, p, func() time.Duration {
		absent, known := k.unconfigured(pod)
		switch {
		case !known:
			return volumeLoop
		case len(absent) == 0:
			return 0
		}
		for _, name := range slices.Sorted(maps.Keys(absent)) {
			k.announceWarning(life, pod, "Failed", "Error: "+absent[name])
		}
		if !maps.Equal(absent, reported) {
			reported = absent
			k.write(life, func() {
				if k.in(p, starting) {
					_, _ = k.patchPodStatus(life.ctx, p, unconfiguredStatus(pod, k.hostIP, life.clock.Now(), absent)) // errors are counted
				}
			})
		}
		return requeued(backOffFirst, life.float())
	})
}

// unconfigured returns a message for each container that needs a missing ConfigMap or Secret. The message names the
// missing object. known is false while the API server has not answered.
func (k *kubelet) unconfigured(pod *corev1.Pod) (absent map[string]string, known bool) {
	known = true
	eachContainer(pod, func(_ int, c *corev1.Container, _ string) {
		eachVariable(c, func(resource, name string, optional *bool) {
			ref := objectRef{resource, pod.Namespace, name}
			switch there, answered := k.isThere(ref, optional); {
			case !answered:
				known = false
			case !there && absent == nil:
				absent = map[string]string{c.Name: ref.absent()}
			case !there:
				absent[c.Name] = ref.absent()
			}
		})
	})
	return absent, known
}

// isThere reports whether an object exists or is optional. known is false while the API server has not responded.
// isThere does not check the ConfigMap clusterCA, because that would delay the start of nearly every pod: the API
// server often refuses the first watch of a pod's objects (see firstLook), and the next try is a second later.
func (k *kubelet) isThere(ref objectRef, optional *bool) (there, known bool) {
	if ref.name == clusterCA || optional != nil && *optional {
		return true, true
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	o := k.objects[ref]
	if o == nil { // the pod has ended, which closed the watch
		return true, true
	}
	return o.found, o.known
}

// unmountable returns why a volume of a pod cannot be mounted, or an empty message if all volumes can be mounted. known
// is false while the API server has not answered.
func (k *kubelet) unmountable(ctx context.Context, pod *corev1.Pod) (message string, known bool) {
	known = true
	for i := range pod.Spec.Volumes {
		v := &pod.Spec.Volumes[i]
		eachObject(v, func(resource, name string, optional *bool) {
			ref := objectRef{resource, pod.Namespace, name}
			switch there, answered := k.isThere(ref, optional); {
			case !answered:
				known = false
			case !there:
				message = fmt.Sprintf("MountVolume.SetUp failed for volume %q : %s", v.Name, ref.absent())
			}
		})
		claim := ""
		switch {
		case v.PersistentVolumeClaim != nil:
			claim = v.PersistentVolumeClaim.ClaimName
		case v.Ephemeral != nil:
			claim = pod.Name + "-" + v.Name
		default:
			continue
		}
		if err := k.readVolumeClaim(ctx, pod.Namespace, claim); err != nil {
			message = fmt.Sprintf("Unable to attach or mount volumes: unmounted volumes=[%[1]s], unattached volumes=[%[1]s], failed to process volumes=[%[1]s]: "+
				"error processing PVC %[2]s/%[3]s: %[4]v", v.Name, pod.Namespace, claim, err)
		}
	}
	return message, known
}

// readVolumeClaim reads a claim, and returns an error unless it is bound.
func (k *kubelet) readVolumeClaim(ctx context.Context, namespace, name string) error {
	claim := &corev1.PersistentVolumeClaim{}
	if err := k.get(ctx, "persistentvolumeclaims", "/api/v1/namespaces/"+namespace+"/persistentvolumeclaims/"+name, claim); err != nil {
		return fmt.Errorf("failed to fetch PVC from API server: %w", err)
	}
	if claim.Status.Phase != corev1.ClaimBound {
		return errors.New("PVC is not bound")
	}
	return nil
}
