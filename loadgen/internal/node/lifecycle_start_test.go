package node

import (
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/stormglass/stormglass/loadgen/scenario"
)

// A kubelet syncs the pod a second after the first attempt, and then every 10 to 15 s. Each sync reports the previous
// attempt.
func TestImageThatCannotBePulled(t *testing.T) {
	const look = 15 * time.Second
	life := scenario.PodLife{Name: "unpullable", ImagePullErrorFor: fixed(40 * time.Second)}
	l := startLiving(t, Lean, life)
	l.bind("sg-0", "web", nil)
	l.await("an attempt", func() bool { return slices.Contains(l.told("web"), "Failed") })
	l.awaitPod("web", "Pending, ContainerCreating")
	for _, step := range []struct {
		by time.Duration
		is string
	}{
		{noticed, "Pending, ErrImagePull"},
		{look, "Pending, ImagePullBackOff"}, // and, 10 s after the first attempt, the second
		{look, "Pending, ErrImagePull"},
		{look, "Running, ready, running"},
	} {
		l.clock.Step(step.by)
		l.awaitPod("web", step.is)
	}
	if n := l.happened("unpullable", lifeImagePullFailed); n != 2 {
		t.Errorf("the node counted %d failed attempts", n)
	}
	l.await("the Events", func() bool {
		told := l.told("web")
		return slices.Contains(told, "Failed") && slices.Contains(told, "BackOff") && slices.Contains(told, "Pulled") && slices.Contains(told, "Started")
	})
}

func TestImageThatIsNeverPulled(t *testing.T) {
	l := startLiving(t, Lean, scenario.PodLife{Name: "absent", ImagePullErrorFor: fixed(never)})
	l.bind("sg-0", "web", func(p *corev1.Pod) { p.Spec.Containers[0].ImagePullPolicy = corev1.PullNever })
	l.await("an attempt", func() bool { return slices.Contains(l.told("web"), "Failed") })
	l.clock.Step(noticed)
	l.awaitPod("web", "Pending, ErrImageNeverPull")
	l.await("the Event with a higher count", func() bool { return len(l.countedUp("web")) >= 2 })
	l.locked(func() {
		told := slices.Sorted(slices.Values(l.told("web"))) // events of one moment are posted together
		if !slices.Equal(told, []string{"ErrImageNeverPull", "Failed"}) {
			t.Errorf("Events %v", told)
		}
	})
	l.awaitPod("web", "Pending, ErrImageNeverPull")
}

// A container with a present image starts while another container's image cannot be pulled.
func TestOneImageOfTwoCannotBePulled(t *testing.T) {
	l := startLiving(t, Lean, scenario.PodLife{Name: "absent", Container: "d", ImagePullErrorFor: fixed(10 * time.Second)})
	l.bind("sg-0", "web", func(p *corev1.Pod) { p.Spec.Containers = append(p.Spec.Containers, corev1.Container{Name: "d"}) })
	l.awaitPod("web", "Pending, running, ContainerCreating")
	l.clock.Step(noticed)
	l.awaitPod("web", "Pending, running, ErrImagePull")
	l.clock.Step(15 * time.Second)
	l.awaitPod("web", "Running, ready, running, running")
	l.deletePod("web")
	l.await("it is gone", func() bool { return l.pods["web"] == nil })
}

func TestInitContainersRunOneAfterAnother(t *testing.T) {
	always := corev1.ContainerRestartPolicyAlways
	life := scenario.PodLife{Name: "slow", Init: scenario.ContainerRun{RunFor: fixed(5 * time.Second), ExitCode: 3, Failures: 1}}
	l := startLiving(t, Lean, life)
	l.bind("sg-0", "web", func(p *corev1.Pod) {
		p.Spec.InitContainers = []corev1.Container{{Name: "i"}, {Name: "sidecar", RestartPolicy: &always}, {Name: "j"}}
	})
	const waiting = "PodInitializing"
	l.awaitPod("web", "Pending, running, "+waiting+", "+waiting+", "+waiting)
	l.locked(func() {
		c := condition(l.pods["web"], corev1.PodInitialized)
		if c.Status != corev1.ConditionFalse || c.Message != "containers with incomplete status: [i sidecar j]" {
			t.Errorf("condition %+v", c)
		}
	})
	l.clock.Step(5 * time.Second)
	l.awaitPod("web", "Pending, running x1 after Error(3), "+waiting+", "+waiting+", "+waiting)
	l.clock.Step(5 * time.Second)
	l.awaitPod("web", "Pending, Completed(0) x1 after Error(3), running, running, "+waiting)
	l.clock.Step(5 * time.Second)
	l.awaitPod("web", "Pending, Completed(0) x1 after Error(3), running, running x1 after Error(3), "+waiting)
	l.clock.Step(5 * time.Second)
	l.awaitPod("web", "Running, ready, Completed(0) x1 after Error(3), running, Completed(0) x1 after Error(3), running")
	l.locked(func() {
		if c := condition(l.pods["web"], corev1.PodInitialized); c.Status != corev1.ConditionTrue {
			t.Errorf("condition %+v", c)
		}
	})
	l.bind("sg-0", "once", func(p *corev1.Pod) {
		p.Spec.RestartPolicy = corev1.RestartPolicyNever
		p.Spec.InitContainers = []corev1.Container{{Name: "i"}}
	})
	l.awaitPod("once", "Pending, running, "+waiting)
	l.clock.Step(5 * time.Second)
	l.awaitPod("once", "Failed, Error(3), "+waiting)
}

func TestProbesFail(t *testing.T) {
	l := startLiving(t, Lean,
		scenario.PodLife{
			Name: "flapping", Match: scenario.PodMatch{Labels: map[string]string{"app": "web"}},
			ReadyAfter: fixed(3 * time.Second), ReadinessFailsAfter: fixed(10 * time.Second), ReadinessFailsFor: fixed(2 * time.Second),
		},
		scenario.PodLife{Name: "stuck", LivenessFailsAfter: fixed(30 * time.Second)},
	)
	l.bind("sg-0", "web", func(p *corev1.Pod) { p.Labels = map[string]string{"app": "web"} })
	l.bind("sg-0", "stuck", nil)
	l.awaitPod("web", "Running, running")
	l.awaitPod("stuck", "Running, ready, running")
	l.clock.Step(3 * time.Second)
	l.awaitPod("web", "Running, ready, running")
	l.clock.Step(10 * time.Second)
	l.awaitPod("web", "Running, running")
	l.clock.Step(2 * time.Second)
	l.awaitPod("web", "Running, ready, running")

	// The node lifecycle controller makes a pod not Ready: the kubelet corrects it.
	l.changePod("web", func(p *corev1.Pod) { condition(p, corev1.PodReady).Status = corev1.ConditionFalse })
	l.awaitPod("web", "Running, ready, running")

	l.clock.Step(15 * time.Second)
	l.await("the Events", func() bool {
		return slices.Contains(l.told("stuck"), "Unhealthy") && slices.Contains(l.told("stuck"), "Killing")
	})
	l.awaitPod("stuck", "Running, ready, running")
	l.clock.Step(minGrace)
	l.awaitPod("stuck", "Running, ready, running x1 after Error(137)")
	if flapped, killed := l.happened("flapping", lifeReadinessFailed), l.happened("stuck", lifeLivenessFailed); flapped != 2 || killed != 1 {
		t.Errorf("the node counted %d and %d failures", flapped, killed)
	}
}

// The pod's own probes fail up to their threshold, one period apart. The PodLife says when the last failure comes.
func TestProbesFailUpToTheirThreshold(t *testing.T) {
	const period = 2 * time.Second
	probe := &corev1.Probe{PeriodSeconds: 2, FailureThreshold: 3}
	for _, test := range []struct {
		name   string
		life   scenario.PodLife
		change func(*corev1.Container)
		before int // failures until it is Ready
		after  string
	}{
		{"readiness", scenario.PodLife{ReadinessFailsAfter: fixed(10 * time.Second)}, func(c *corev1.Container) { c.ReadinessProbe = probe }, 2, "Running, running"},
		{"liveness", scenario.PodLife{LivenessFailsAfter: fixed(10 * time.Second)}, func(c *corev1.Container) { c.LivenessProbe = probe }, 0,
			"Running, ready, running"},
	} {
		t.Run(test.name, func(t *testing.T) {
			test.life.Name = "failing"
			l := startLiving(t, Lean, test.life)
			l.bind("sg-0", "web", func(p *corev1.Pod) { test.change(&p.Spec.Containers[0]) })
			if test.before > 0 {
				l.awaitPod("web", "Running, running")
				l.await("the failures at its start", func() bool { return l.unhealthy("web") == test.before })
				l.clock.Step(period)
			}
			l.awaitPod("web", "Running, ready, running")
			l.clock.Step(5 * time.Second)
			l.locked(func() {
				if l.unhealthy("web") != test.before {
					t.Error("a probe fails before 6 s have passed")
				}
			})
			l.clock.Step(time.Second)
			l.await("the first failure", func() bool { return l.unhealthy("web") == test.before+1 })
			l.clock.Step(period)
			l.await("the second failure", func() bool { return l.unhealthy("web") == test.before+2 })
			l.awaitPod("web", "Running, ready, running")
			l.clock.Step(period)
			l.await("the third failure", func() bool { return l.unhealthy("web") >= test.before+3 })
			l.awaitPod("web", test.after)
		})
	}
}

// A readiness probe is attempted twice as the container starts and does not respond yet, and then once per period until
// it succeeds.
func TestReadinessProbeFailsUntilReady(t *testing.T) {
	l := startLiving(t, Lean, scenario.PodLife{Name: "late", ReadyAfter: fixed(5 * time.Second)})
	l.bind("sg-0", "web", func(p *corev1.Pod) {
		p.Spec.Containers[0].ReadinessProbe = &corev1.Probe{PeriodSeconds: 2, FailureThreshold: 3}
	})
	l.awaitPod("web", "Running, running")
	for n := 2; n <= 4; n++ {
		l.await("a failure", func() bool { return l.unhealthy("web") == n })
		l.awaitPod("web", "Running, running")
		l.clock.Step(2 * time.Second)
	}
	l.awaitPod("web", "Running, ready, running")
	l.clock.Step(time.Minute)
	l.locked(func() {
		if n := l.unhealthy("web"); n != 4 {
			t.Errorf("%d failures were posted, want 4", n)
		}
	})
}

func TestReadinessProbeSucceedsAtAnAttempt(t *testing.T) {
	const second = time.Second
	for _, test := range []struct {
		probe corev1.Probe
		after time.Duration
		want  time.Duration
	}{
		{corev1.Probe{}, 0, second},
		{corev1.Probe{PeriodSeconds: 10}, 0, 10 * second},
		{corev1.Probe{PeriodSeconds: 10}, 10 * second, 10 * second},
		{corev1.Probe{PeriodSeconds: 10}, 11 * second, 20 * second},
		{corev1.Probe{PeriodSeconds: 3, InitialDelaySeconds: 5}, 0, 6 * second},
		{corev1.Probe{PeriodSeconds: 3, SuccessThreshold: 3}, 4 * second, 12 * second},
	} {
		if got := probeSucceeds(&test.probe, test.after); got != test.want {
			t.Errorf("%+v that would succeed from %s on does after %s, want %s", test.probe, test.after, got, test.want)
		}
	}
}
