package node

import (
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stormglass/stormglass/loadgen/scenario"
)

// jobRunFor is how long the containers of pods with restartPolicy Never or OnFailure run if no PodLife sets a RunFor.
// Such pods usually belong to Jobs, which wait for the pods to end.
const jobRunFor = 10 * time.Second

// annotatedLife and jobLife name the PodLives that lifeOf creates in addition to the PodLives of the scenario.
const (
	annotatedLife = "annotated"
	jobLife       = "job"
)

// lifeOf returns the PodLife of a pod, or nil if its containers keep running. The result depends only on the seed and
// on the pod's namespace, name, labels, annotations, owner and restart policy.
func (p *plan) lifeOf(pod *corev1.Pod) *scenario.PodLife {
	of := p.drawLife(pod)
	after, err := time.ParseDuration(pod.Annotations[scenario.ExitAfterAnnotation])
	switch {
	case err == nil && after >= 0:
		life := copyOf(of, annotatedLife)
		life.RunFor = always(max(after, 1)) // with a RunFor of 0, the containers would never end
		if code, err := strconv.ParseUint(pod.Annotations[scenario.ExitCodeAnnotation], 10, 8); err == nil {
			life.ExitCode, life.Reason = int(code), ""
		}
		return life
	case (of == nil || of.RunFor == scenario.Spread{}) && endsByItself(pod):
		life := copyOf(of, jobLife)
		life.RunFor = always(jobRunFor)
		return life
	}
	return of
}

func endsByItself(pod *corev1.Pod) bool {
	return pod.Spec.RestartPolicy == corev1.RestartPolicyNever || pod.Spec.RestartPolicy == corev1.RestartPolicyOnFailure
}

// copyOf returns a copy of a PodLife, or a new PodLife with this name if `of` is nil.
func copyOf(of *scenario.PodLife, name string) *scenario.PodLife {
	if of == nil {
		return &scenario.PodLife{Name: name}
	}
	life := *of
	return &life
}

// drawLife returns the scenario's PodLife that applies to a pod, or nil. An annotation of the pod may name the PodLife.
// Otherwise each matching PodLife with a Share applies to that fraction of the pods, in order. The first matching
// PodLife without a Share applies to all remaining pods.
func (p *plan) drawLife(pod *corev1.Pod) *scenario.PodLife {
	lives := p.Spec.PodLives
	if len(lives) == 0 {
		return nil
	}
	if name, ok := pod.Annotations[scenario.PodLifeAnnotation]; ok {
		for i := range lives {
			if lives[i].Name == name {
				return &lives[i]
			}
		}
	}
	drawn, taken := -1.0, 0.0
	for i := range lives {
		l := &lives[i]
		switch {
		case !matches(l.Match, pod):
			continue
		case l.Share == nil:
			return l
		case drawn < 0:
			drawn = draw(p.Seed, "pod life", pod.Namespace, pod.Name)
		}
		if taken += l.Share.Value; drawn < taken {
			return l
		}
	}
	return nil
}

func matches(m scenario.PodMatch, pod *corev1.Pod) bool {
	return (m.Namespace == "" || m.Namespace == pod.Namespace) && (m.Owner == "" || m.Owner == ownerKind(pod)) &&
		contains(pod.Labels, m.Labels) && contains(pod.Annotations, m.Annotations)
}

func contains(all, some map[string]string) bool {
	for key, value := range some {
		if got, ok := all[key]; !ok || got != value {
			return false
		}
	}
	return true
}

func ownerKind(pod *corev1.Pod) string {
	if owner := metav1.GetControllerOfNoCopy(pod); owner != nil {
		return owner.Kind
	}
	return ""
}

func always(d time.Duration) scenario.Spread { return scenario.Spread{Median: d, P99: d} }

// These are the waits of a kubelet 1.37 between attempts to start a container or to pull an image
// (pkg/kubelet/kubelet.go, client-go's util/flowcontrol).
const (
	backOffFirst   = 10 * time.Second
	backOffReset   = 10 * time.Minute // a run longer than this resets the back-off
	imageBackOff   = 5 * time.Minute  // longest wait between attempts to pull an image
	resyncInterval = time.Minute
	// noticed is the approximate time from the start of a pod's sandbox until the kubelet next syncs the pod
	// (pkg/kubelet/pleg).
	noticed = time.Second
	// startTakes is the approximate time from a kubelet's sync of a pod until the container that it starts is running,
	// as measured (loadgen/lab/records/pod-lives.md).
	startTakes = 150 * time.Millisecond
)

// backOff is a kubelet's back-off for one container or image. The zero value means no attempts so far.
type backOff struct {
	delay   time.Duration
	updated time.Time
}

// remaining returns how long a container whose last run ended at `ended` must wait before its next start.
func (b *backOff) remaining(ended time.Time) time.Duration {
	if ended.Sub(b.updated) > backOffReset {
		return 0
	}
	return b.delay
}

// next sets the delay before the next attempt, after an attempt at the time `now`. ended is when the previous run
// ended. The delay doubles, up to `most`. It starts at backOffFirst again if the run lasted more than backOffReset.
func (b *backOff) next(ended, now time.Time, most time.Duration) {
	switch {
	case b.delay == 0 || ended.Sub(b.updated) > backOffReset:
		b.delay = min(backOffFirst, most)
	default:
		b.delay = min(2*b.delay, most)
	}
	b.updated = now
}

// requeued returns the time until a kubelet syncs a waiting pod again: `wait`, but at most resyncInterval, plus a
// jitter of up to half of that (completeWork in pkg/kubelet/pod_workers.go). drawn, from 0 to 1, determines the jitter.
func requeued(wait time.Duration, drawn float64) time.Duration {
	wait = min(wait, resyncInterval)
	return wait + time.Duration(drawn/2*float64(wait))
}
