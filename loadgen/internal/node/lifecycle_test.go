package node

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/stormglass/stormglass/loadgen/scenario"
)

func TestPodsThatRunOnceComplete(t *testing.T) {
	l := startLiving(t, Lean)
	once := map[string]func(*corev1.Pod){
		"job": ownedBy("Job"), "helm-test": restarts(corev1.RestartPolicyNever), "on-failure": restarts(corev1.RestartPolicyOnFailure),
	}
	for name, change := range once {
		l.bind("sg-0", name, change)
	}
	l.bind("sg-0", "web", ownedBy("ReplicaSet"))
	l.bind("sg-0", "bare", restarts(corev1.RestartPolicyAlways))
	for _, name := range []string{"job", "helm-test", "on-failure", "web", "bare"} {
		l.awaitPod(name, "Running, ready, running")
	}
	l.clock.Step(jobRunFor)
	for name := range once {
		l.awaitPod(name, "Succeeded, Completed(0)")
	}
	l.clock.Step(time.Hour)
	l.awaitPod("web", "Running, ready, running")
	l.awaitPod("bare", "Running, ready, running")
	if n := l.fleet.Live().PodsRunning; n != 2 {
		t.Errorf("%d pods run", n)
	}
	k := l.fleet.kubelets[0]
	eventually(t, "the address of the pod that has ended is free again", func() bool {
		k.mu.Lock()
		defer k.mu.Unlock()
		return !k.pods["uid-job"].ip.IsValid() && k.pods["uid-web"].ip.IsValid()
	})
}

// `kubectl run --rm -i` attaches to a container and waits for the end of the stream.
func TestFollowedLogEndsWithItsContainer(t *testing.T) {
	l := startLiving(t, Lean)
	l.bind("sg-0", "run", restarts(corev1.RestartPolicyNever))
	eventually(t, "it runs", func() bool { return l.fleet.Live().PodsRunning == 1 })
	var pod *corev1.Pod
	l.locked(func() { pod = l.pods["run"] })
	ended := make(chan error)
	go func() {
		ended <- l.fleet.kubelets[0].Log(t.Context(), pod, "c", &corev1.PodLogOptions{Follow: true}, io.Discard)
	}()
	eventually(t, "it ends", func() bool {
		l.clock.Step(time.Second)
		select {
		case err := <-ended:
			must(t, err)
			return true
		default:
			return false
		}
	})
	l.awaitPod("run", "Succeeded, Completed(0)")
}

// A container stays ended during its back-off, until its kubelet looks at the pod again: when the back-off is over or
// after a minute, plus up to half of that time.
func TestCrashLoopBacksOff(t *testing.T) {
	l := startLiving(t, Lean, crashing(5*time.Second))
	l.bind("sg-0", "web", nil)
	l.awaitPod("web", "Running, ready, running")
	l.clock.Step(5 * time.Second)
	l.awaitPod("web", "Running, ready, running x1 after Error(1)") // the first restart is immediate
	for n, delay := range []time.Duration{10, 20, 40, 80, 160, 300, 300} {
		delay *= time.Second
		ended, backsOff := fmt.Sprintf("Running, Error(1) x%d after Error(1)", n+1), fmt.Sprintf("Running, CrashLoopBackOff x%d after Error(1)", n+1)
		l.clock.Step(5 * time.Second)
		l.awaitPod("web", ended)
		if running := l.fleet.Live().PodsRunning; running != 0 {
			t.Errorf("%d pods run while one is in back-off", running)
		}
		const longest = resyncInterval * 3 / 2
		left := delay - 1
		if delay > longest {
			l.clock.Step(longest)
			l.awaitPod("web", backsOff)
			left -= longest
		}
		l.clock.Step(left)
		l.locked(func() {
			if s := l.pods["web"].Status.ContainerStatuses[0]; s.State.Running != nil || delay <= resyncInterval && s.State.Terminated == nil {
				t.Errorf("before restart %d, within its back-off: %+v", n+2, s.State)
			}
		})
		l.clock.Step(min(delay, resyncInterval)/2 + 1)
		l.awaitPod("web", backsOff)
		l.locked(func() {
			want := fmt.Sprintf("back-off %s restarting failed container=c pod=web_ns(uid-web)", delay)
			if got := l.pods["web"].Status.ContainerStatuses[0].State.Waiting.Message; got != want {
				t.Errorf("message %q, want %q", got, want)
			}
		})
		eventually(t, "its start was decided", func() bool {
			if l.happened("crashing", lifeRestarted) == n+2 {
				return true
			}
			l.clock.Step(startTakes / 50) // so small that the container has not ended again before its start is seen
			return false
		})
		l.awaitPod("web", fmt.Sprintf("Running, ready, running x%d after Error(1)", n+2))
	}
	if n := l.happened("crashing", lifeRestarted); n != 8 {
		t.Errorf("the node counted %d restarts", n)
	}
}

func TestBackOffStartsAnewAfterALongRun(t *testing.T) {
	var b backOff
	now := time.Unix(1000, 0)
	for _, test := range []struct {
		ran, wait time.Duration
	}{
		{time.Second, 0}, {time.Second, 10 * time.Second}, {time.Second, 20 * time.Second}, {10 * time.Minute, 40 * time.Second},
		{10*time.Minute + time.Second, 0}, {time.Second, 10 * time.Second},
	} {
		now = now.Add(test.ran)
		wait := b.remaining(now)
		if wait != test.wait {
			t.Errorf("after a run of %s it waits %s, want %s", test.ran, wait, test.wait)
		}
		ended := now
		now = now.Add(wait)
		b.next(ended, now, 5*time.Minute)
	}
}

func TestRestartPolicyDecidesWhatAnEndMeans(t *testing.T) {
	life := crashing(5 * time.Second)
	life.Failures = 1
	for _, test := range []struct {
		policy corev1.RestartPolicy
		steps  []string
	}{
		{corev1.RestartPolicyNever, []string{"Failed, Error(1)"}},
		{corev1.RestartPolicyOnFailure, []string{"Running, ready, running x1 after Error(1)", "Succeeded, Completed(0) x1 after Error(1)"}},
		{corev1.RestartPolicyAlways, []string{"Running, ready, running x1 after Error(1)", "Running, ready, running x1 after Error(1)"}},
	} {
		t.Run(string(test.policy), func(t *testing.T) {
			l := startLiving(t, Lean, life)
			l.bind("sg-0", "web", restarts(test.policy))
			l.awaitPod("web", "Running, ready, running")
			for _, want := range test.steps {
				l.clock.Step(5 * time.Second)
				l.awaitPod("web", want)
			}
		})
	}
}

func TestOutOfMemory(t *testing.T) {
	life := scenario.PodLife{Name: "leaking", ContainerRun: scenario.ContainerRun{RunFor: fixed(time.Second), Reason: scenario.OOMKilled}}
	l := startLiving(t, Lean, life)
	l.bind("sg-0", "web", restarts(corev1.RestartPolicyNever))
	l.awaitPod("web", "Running, ready, running")
	l.clock.Step(time.Second)
	l.awaitPod("web", "Failed, OOMKilled(137)")
	if n := l.happened("leaking", lifeOOMKilled); n != 1 {
		t.Errorf("the node counted %d events", n)
	}
}

func TestOneContainerOfTwoFails(t *testing.T) {
	life := crashing(5 * time.Second)
	life.Container = "d"
	l := startLiving(t, Lean, life)
	two := func(policy corev1.RestartPolicy) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			p.Spec.RestartPolicy = policy
			p.Spec.Containers = append(p.Spec.Containers, corev1.Container{Name: "d"})
		}
	}
	l.bind("sg-0", "never", two(corev1.RestartPolicyNever))
	l.bind("sg-0", "always", two(corev1.RestartPolicyAlways))
	l.awaitPod("never", "Running, ready, running, running")
	l.awaitPod("always", "Running, ready, running, running")
	l.clock.Step(5 * time.Second)
	l.awaitPod("never", "Running, running, Error(1)")
	l.awaitPod("always", "Running, ready, running, running x1 after Error(1)")
}

// A pod with a life without stages writes the same statuses (phase, states of containers, Ready) as a pod without a life.
// Events and times may differ: a readiness probe of a life succeeds after its first period.
func TestLifeWithoutStagesChangesNoStatus(t *testing.T) {
	probe := &corev1.Probe{}
	always := corev1.ContainerRestartPolicyAlways
	for name, change := range map[string]func(*corev1.Pod){
		"plain": nil,
		"probes": func(p *corev1.Pod) {
			p.Spec.Containers[0].StartupProbe, p.Spec.Containers[0].ReadinessProbe = probe, probe
		},
		"startup probe":  func(p *corev1.Pod) { p.Spec.Containers[0].StartupProbe = probe },
		"two containers": func(p *corev1.Pod) { p.Spec.Containers = append(p.Spec.Containers, corev1.Container{Name: "d"}) },
		"init containers": func(p *corev1.Pod) {
			p.Spec.InitContainers = []corev1.Container{{Name: "i"}, {Name: "j"}, {Name: "sidecar", RestartPolicy: &always}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			statuses := map[bool][]string{}
			for _, lives := range []bool{false, true} {
				s, f := started(t, func(c *Config) {
					c.Spec.Fidelity = Kubelet
					if lives {
						c.Spec.PodLives = []scenario.PodLife{{Name: "idle"}}
					}
				})
				s.bind("sg-0", "web", change)
				eventually(t, "it runs", func() bool { return f.Live().PodsRunning == 1 })
				s.await("it is Ready", func() bool { return isReady(s.pods["web"]) })
				s.deletePod("web")
				s.await("it is gone", func() bool { return s.pods["web"] == nil })
				s.locked(func() {
					for _, r := range s.seen("PATCH", "/pods/web/status") {
						var p corev1.Pod
						must(t, json.Unmarshal(r.body, &p))
						statuses[lives] = append(statuses[lives], tell(p.Status))
					}
				})
			}
			if !slices.Equal(statuses[false], statuses[true]) {
				t.Errorf("without: %s\nwith: %s", strings.Join(statuses[false], "; "), strings.Join(statuses[true], "; "))
			}
		})
	}
}
