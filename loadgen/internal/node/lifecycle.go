package node

import (
	"cmp"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	"github.com/stormglass/stormglass/loadgen/scenario"
)

// These are values of the label "event" of the metric stormglass_node_pod_life_events_total. The metric counts what
// happens to pods with a PodLife.
const (
	lifeBegan           = "began"
	lifeImagePullFailed = "image_pull_failed"
	lifeInitFailed      = "init_container_failed"
	lifeCompleted       = "container_completed"
	lifeFailed          = "container_failed"
	lifeOOMKilled       = "container_oom_killed"
	lifeRestarted       = "container_restarted"
	lifeReadinessFailed = "readiness_failed"
	lifeLivenessFailed  = "liveness_failed"
	lifeStopTimedOut    = "grace_period_exceeded"
	lifeEvicted         = "evicted"
	lifeRejected        = "rejected"
)

// never is the minimum duration in a PodLife that counts as unlimited.
const never = 24 * time.Hour

// killed is the exit code of a container that SIGKILL ended.
const killed = 128 + 9

// lifecycle simulates the containers of a pod to which a PodLife of the scenario applies. Timers with random durations
// make containers start, fail, end and restart. The lifecycle reports each change as a kubelet's status manager does.
// k.mu guards a lifecycle: callers of its methods hold k.mu, unless a method's comment says otherwise.
type lifecycle struct {
	k     *kubelet
	life  *life // current run of the kubelet
	p     *pod
	of    *scenario.PodLife
	model podModel
	// timers holds the running timers by container and purpose. Setting a timer replaces an earlier timer with the same
	// key.
	timers map[timerKey]clock.Timer
	events eventLog
	// unposted holds the encoded Events that the next post sends together.
	unposted [][]byte

	looks          int    // number of syncs that looked for missing images
	version, acked uint64 // number of the newest status, and of the newest acknowledged status
	ready          bool   // whether the condition Ready was true in the last rendered status
	seenVersion    uint64 // resourceVersion of the last watch event about the pod
	seenReady      bool
	begun          bool // whether the pod's first container was started, or the pod was adopted
	ran            bool // whether a regular container has started
	mayBeEvicted   bool // whether the eviction timer was set
	ended          bool // whether the pod's phase is Succeeded or Failed
	done           bool // whether the final status is acknowledged
	deleted        bool // whether the pod was deleted, with a grace period, before its end was reported
}

type stage uint8

const (
	pulls stage = iota
	starts
	becomesReady
	failsReadiness
	failsLiveness
	ends
	evicts
)

type timerKey struct {
	container int // index of the container; -1 means the pod
	stage     stage
}

func (k *kubelet) newLifecycle(p *pod, spec *corev1.Pod, of *scenario.PodLife) *lifecycle {
	l := &lifecycle{k: k, life: k.life, p: p, of: of, model: newPodModel(spec), timers: map[timerKey]clock.Timer{}}
	l.count(lifeBegan)
	return l
}

func (l *lifecycle) count(what string) { l.k.ledger.lived(l.of.Name, what) }

// begin starts the pod's first container. pulled says for each container whether its image was pulled. The caller does
// not hold mu.
func (l *lifecycle) begin(spec *corev1.Pod, pulled []bool) {
	k := l.k
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.pods[l.p.uid] != l.p || l.p.state != starting {
		return
	}
	if !l.p.ip.IsValid() && !l.p.hostNetwork {
		ip, ok := k.ips.take()
		if !ok {
			k.plan.Log("node %s: no free IP address for pod %s/%s", k.name, l.p.namespace, l.p.name)
			l.life.after(podBackoffMax, func() { l.begin(spec, pulled) })
			return
		}
		l.p.ip = ip
	}
	l.model.pod.Status.StartTime = cmp.Or(spec.Status.StartTime, new(metav1.NewTime(l.now())))
	for i := range l.model.containers {
		l.model.containers[i].pulled = pulled[i]
	}
	l.begun = true
	l.initialize(0)
}

// initialize runs the init containers from index i on, one after another, and then the regular containers.
func (l *lifecycle) initialize(i int) {
	if i == len(l.model.pod.Spec.InitContainers) {
		l.pull()
		return
	}
	l.launch(i)
	if l.model.containers[i].kind == sidecar {
		l.initialize(i + 1)
	}
}

// concerns reports whether the PodLife applies to a container. If the PodLife names a container, it applies only to
// that one. Otherwise it applies to all regular containers.
func (l *lifecycle) concerns(c *containerState) bool {
	if l.of.Container != "" {
		return c.spec.Name == l.of.Container
	}
	return c.kind == regular
}

func (l *lifecycle) launch(which ...int) {
	at := metav1.NewTime(l.now())
	for _, i := range which {
		c := &l.model.containers[i]
		if c.state.Terminated != nil {
			c.last = c.state.Terminated
		}
		c.state = corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: at}}
		c.failing, c.attempts = nil, 0
		c.started, c.ready = true, c.kind == sidecar
		if c.kind == regular {
			l.ran = true
			c.started = c.spec.StartupProbe == nil
		}
		for _, e := range startsOf(c.spec, c.field, c.pulled) {
			l.announce(c, corev1.EventTypeNormal, e.reason, e.message)
		}
		c.pulled = false
	}
	l.settle()
	l.probe(which)
	for _, i := range which {
		l.arm(i, 0)
	}
	if l.ran && !l.mayBeEvicted {
		l.armEviction(0)
	}
}

// arm sets the timers that end container i or change its readiness. ran is how long the container has been running.
func (l *lifecycle) arm(i int, ran time.Duration) {
	c := &l.model.containers[i]
	if c.kind == initial {
		code, reason := l.outcome(c, l.of.Init)
		l.afterOrNow(timerKey{i, ends}, l.drawn(l.of.Init.RunFor, i, "init")-ran, func() { l.end(i, code, reason) })
		return
	}
	if c.kind == regular && !c.ready {
		l.awaitReady(i, ran)
	}
	if !l.concerns(c) {
		return
	}
	if c.kind == regular && c.ready {
		l.armReadiness(i)
	}
	if d := l.drawn(l.of.LivenessFailsAfter, i, "liveness"); d > 0 && !l.healed(c) {
		l.failProbe(i, failsLiveness, c.spec.LivenessProbe, d-ran, func() { l.failLiveness(i) })
	}
	if d := l.drawn(l.of.RunFor, i, "run"); d > 0 && !(l.healed(c) && l.model.restarts(c, 0)) {
		code, reason := l.outcome(c, l.of.ContainerRun)
		l.after(timerKey{i, ends}, d-ran, func() { l.end(i, code, reason) })
	}
}

// healed reports whether a container has failed as often as its PodLife says (Failures). Then it no longer fails.
func (l *lifecycle) healed(c *containerState) bool {
	return l.of.Failures > 0 && c.failures >= l.of.Failures
}

// outcome returns the exit code and the reason with which the current run of a container will end. After run.Failures
// failures, the exit code is 0. If run.Failures is 0, the exit code is always run.Code().
func (l *lifecycle) outcome(c *containerState, run scenario.ContainerRun) (code int32, reason string) {
	if run.Failures > 0 && c.failures >= run.Failures {
		return 0, ""
	}
	return int32(run.Code()), run.Reason
}

// drawn returns a random duration from the distribution s for the current run of container i, or for the pod if i is
// -1. The duration depends on the seed and on `what`, its purpose. For the zero Spread it is 0.
func (l *lifecycle) drawn(s scenario.Spread, i int, what string) time.Duration {
	if s == (scenario.Spread{}) {
		return 0
	}
	name, run := "", 0
	if i >= 0 {
		name, run = l.model.containers[i].spec.Name, int(l.model.containers[i].restarts)
	}
	return s.At(draw(l.k.plan.Seed, "pod life", l.p.namespace, l.p.name, name, what, strconv.Itoa(run)))
}

func (l *lifecycle) now() time.Time { return l.life.clock.Now() }

// after sets a timer that calls f after d, with k.mu held. The timer does not call f if it was stopped or set again, or
// if the pod has ended or is being deleted.
func (l *lifecycle) after(key timerKey, d time.Duration, f func()) {
	l.stop(key)
	var timer clock.Timer
	timer = l.life.after(max(d, 1), func() {
		l.k.mu.Lock()
		defer l.k.mu.Unlock()
		if l.timers[key] != timer { // the timer was stopped while it fired
			return
		}
		delete(l.timers, key)
		if l.k.pods[l.p.uid] == l.p && l.p.state < stopping {
			f()
		}
	})
	l.timers[key] = timer
}

// afterOrNow calls f immediately if d is not positive. Otherwise it sets a timer, as after does.
func (l *lifecycle) afterOrNow(key timerKey, d time.Duration, f func()) {
	if d <= 0 {
		f()
		return
	}
	l.after(key, d, f)
}

func (l *lifecycle) stop(key timerKey) {
	if t := l.timers[key]; t != nil {
		t.Stop()
	}
	delete(l.timers, key)
}

func (l *lifecycle) cancel() {
	for key := range l.timers {
		l.stop(key)
	}
}
