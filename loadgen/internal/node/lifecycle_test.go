package node

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stormglass/stormglass/loadgen/scenario"
)

// living is a node whose pods have lives, by a clock that only the test moves.
type living struct {
	*stub
	fleet *Fleet
	clock fakeClock
	seen  *prometheus.Registry
}

func startLiving(t *testing.T, fidelity string, lives ...scenario.PodLife) *living {
	t.Helper()
	l := &living{clock: newFakeClock(time.Now().Truncate(time.Second)), seen: prometheus.NewRegistry()}
	l.stub, l.fleet = started(t, func(c *Config) {
		c.clock, c.Registerer = l.clock, l.seen
		c.Spec.Fidelity, c.Spec.PodLives = fidelity, lives
		c.Spec.LeaseRenew, c.Spec.StatusReport = scenario.Duration(24*time.Hour), scenario.Duration(24*time.Hour)
	})
	return l
}

func fixed(d time.Duration) scenario.Spread { return scenario.Spread{Median: d, P99: d} }

// crashing is a life whose containers fail after some time.
func crashing(after time.Duration) scenario.PodLife {
	return scenario.PodLife{Name: "crashing", ContainerRun: scenario.ContainerRun{RunFor: fixed(after), ExitCode: 1}}
}

// tell is a pod's status in a line: its phase, whether it is Ready, and each container.
func tell(s corev1.PodStatus) string {
	parts := []string{string(s.Phase)}
	if s.Reason != "" {
		parts[0] += "/" + s.Reason
	}
	if isReady(&corev1.Pod{Status: s}) {
		parts = append(parts, "ready")
	}
	for _, c := range append(s.InitContainerStatuses, s.ContainerStatuses...) {
		text := "running"
		switch {
		case c.State.Waiting != nil:
			text = c.State.Waiting.Reason
		case c.State.Terminated != nil:
			text = fmt.Sprintf("%s(%d)", c.State.Terminated.Reason, c.State.Terminated.ExitCode)
		}
		if c.RestartCount > 0 {
			text += fmt.Sprintf(" x%d", c.RestartCount)
		}
		if last := c.LastTerminationState.Terminated; last != nil {
			text += fmt.Sprintf(" after %s(%d)", last.Reason, last.ExitCode)
		}
		parts = append(parts, text)
	}
	return strings.Join(parts, ", ")
}

// awaitPod waits for a pod's status in a line.
func (l *living) awaitPod(name, want string) {
	l.t.Helper()
	got := ""
	defer func() {
		if got != want {
			l.t.Logf("pod %s is: %s", name, got)
		}
	}()
	l.await(name+" is: "+want, func() bool {
		if p := l.pods[name]; p != nil {
			got = tell(p.Status)
		}
		return got == want
	})
}

// statuses are those that were written of a pod, each in a line.
func (l *living) statuses(name string) (all []string) {
	l.locked(func() {
		for _, r := range l.stub.seen("PATCH", "/pods/"+name+"/status") {
			var p corev1.Pod
			must(l.t, json.Unmarshal(r.body, &p))
			all = append(all, tell(p.Status))
		}
	})
	return all
}

// happened counts the events of a life.
func (l *living) happened(life, event string) int {
	families, err := l.seen.Gather()
	must(l.t, err)
	for _, f := range families {
		if f.GetName() != "stormglass_node_pod_life_events_total" {
			continue
		}
		for _, m := range f.GetMetric() {
			label := func(name string) string {
				i := slices.IndexFunc(m.GetLabel(), func(p *dto.LabelPair) bool { return p.GetName() == name })
				return m.GetLabel()[i].GetValue()
			}
			if label("life") == life && label("event") == event {
				return int(m.GetCounter().GetValue())
			}
		}
	}
	return 0
}

func restarts(policy corev1.RestartPolicy) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Spec.RestartPolicy = policy }
}

func ownedBy(kind string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		yes := true
		p.OwnerReferences = []metav1.OwnerReference{{Kind: kind, Name: "owner", UID: "uid-owner", Controller: &yes}}
		p.Spec.RestartPolicy = corev1.RestartPolicyNever
	}
}

func TestPodsOfJobsComplete(t *testing.T) {
	l := startLiving(t, Lean)
	l.bind("sg-0", "job", ownedBy("Job"))
	l.bind("sg-0", "web", ownedBy("ReplicaSet"))
	l.awaitPod("job", "Running, ready, running")
	l.awaitPod("web", "Running, ready, running")
	l.clock.Step(jobRunFor)
	l.awaitPod("job", "Succeeded, Completed(0)")
	l.clock.Step(time.Hour)
	l.awaitPod("web", "Running, ready, running")
	if n := l.fleet.Live().PodsRunning; n != 1 {
		t.Errorf("%d pods run", n)
	}
	k := l.fleet.kubelets[0]
	eventually(t, "the address of the pod that has ended is free again", func() bool {
		k.mu.Lock()
		defer k.mu.Unlock()
		return !k.pods["uid-job"].ip.IsValid() && k.pods["uid-web"].ip.IsValid()
	})
}

func TestCrashLoopBacksOff(t *testing.T) {
	l := startLiving(t, Lean, crashing(5*time.Second))
	l.bind("sg-0", "web", nil)
	l.awaitPod("web", "Running, ready, running")
	l.clock.Step(5 * time.Second)
	l.awaitPod("web", "Running, ready, running x1 after Error(1)") // the first restart is at once
	for n, delay := range []time.Duration{10, 20, 40, 80, 160, 300, 300} {
		l.clock.Step(5 * time.Second)
		l.awaitPod("web", fmt.Sprintf("Running, Error(1) x%d after Error(1)", n+1))
		l.clock.Step(noticed)
		l.awaitPod("web", fmt.Sprintf("Running, CrashLoopBackOff x%d after Error(1)", n+1))
		l.locked(func() {
			want := fmt.Sprintf("back-off %s restarting failed container=c pod=web_ns(uid-web)", delay*time.Second)
			if got := l.pods["web"].Status.ContainerStatuses[0].State.Waiting.Message; got != want {
				t.Errorf("message %q, want %q", got, want)
			}
		})
		if running := l.fleet.Live().PodsRunning; running != 0 {
			t.Errorf("%d pods run while one backs off", running)
		}
		l.clock.Step(delay*time.Second - noticed - 1)
		l.locked(func() {
			if s := l.pods["web"].Status.ContainerStatuses[0]; s.State.Running != nil {
				t.Errorf("restart %d came before its back-off was over", n+2)
			}
		})
		l.clock.Step(min(delay*time.Second, resyncInterval)/2 + 1) // a kubelet's jitter
		l.awaitPod("web", fmt.Sprintf("Running, ready, running x%d after Error(1)", n+2))
	}
	if n := l.happened("crashing", lifeRestarted); n != 8 {
		t.Errorf("%d restarts were counted", n)
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
		t.Errorf("%d were counted", n)
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

func TestImageThatCannotBePulled(t *testing.T) {
	life := scenario.PodLife{Name: "unpullable", ImagePullErrorFor: fixed(25 * time.Second)}
	l := startLiving(t, Lean, life)
	l.bind("sg-0", "web", nil)
	l.awaitPod("web", "Pending, ErrImagePull")
	l.clock.Step(5 * time.Second)
	l.awaitPod("web", "Pending, ImagePullBackOff")
	l.clock.Step(10 * time.Second) // with jitter, 10 s after the attempt
	l.awaitPod("web", "Pending, ErrImagePull")
	l.clock.Step(10 * time.Second)
	l.awaitPod("web", "Pending, ImagePullBackOff")
	l.clock.Step(20 * time.Second)
	l.awaitPod("web", "Running, ready, running")
	if n := l.happened("unpullable", lifeImagePullFailed); n != 2 {
		t.Errorf("%d attempts in vain were counted", n)
	}
	l.await("it is told", func() bool {
		told := l.told("web")
		return slices.Contains(told, "Failed") && slices.Contains(told, "BackOff") && slices.Contains(told, "Pulled") && slices.Contains(told, "Started")
	})
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

	// The node lifecycle controller makes a pod not Ready: that is set right.
	l.changePod("web", func(p *corev1.Pod) { condition(p, corev1.PodReady).Status = corev1.ConditionFalse })
	l.awaitPod("web", "Running, ready, running")

	l.clock.Step(15 * time.Second)
	l.awaitPod("stuck", "Running, ready, running x1 after Error(137)")
	l.await("it is told", func() bool { return slices.Contains(l.told("stuck"), "Unhealthy") })
	if flapped, killed := l.happened("flapping", lifeReadinessFailed), l.happened("stuck", lifeLivenessFailed); flapped != 2 || killed != 1 {
		t.Errorf("%d and %d failures were counted", flapped, killed)
	}
}

func TestEvictionUnderPressure(t *testing.T) {
	l := startLiving(t, Lean, scenario.PodLife{
		Name: "hungry", Match: scenario.PodMatch{Owner: "ReplicaSet"},
		Evict: scenario.Eviction{After: fixed(30 * time.Second), Condition: "MemoryPressure", For: scenario.Duration(time.Minute)},
	})
	pressure := func() corev1.NodeCondition {
		for _, c := range l.nodes["sg-0"].Status.Conditions {
			if c.Type == corev1.NodeMemoryPressure {
				return c
			}
		}
		return corev1.NodeCondition{}
	}
	priority := int32(systemCritical)
	l.bind("sg-0", "web", ownedBy("ReplicaSet"))
	l.bind("sg-0", "critical", func(p *corev1.Pod) {
		ownedBy("ReplicaSet")(p)
		p.Spec.Priority = &priority
	})
	l.awaitPod("web", "Running, ready, running")
	l.awaitPod("critical", "Running, ready, running")
	l.clock.Step(30 * time.Second)
	l.awaitPod("web", "Failed/Evicted, Error(137)")
	l.locked(func() {
		p := l.pods["web"]
		if c := condition(p, corev1.DisruptionTarget); c == nil || c.Reason != corev1.PodReasonTerminationByKubelet || p.Status.Message != "The node was low on resource: memory. " {
			t.Errorf("message %q, condition %+v", p.Status.Message, c)
		}
	})
	l.bind("sg-0", "refused", nil)
	l.awaitPod("refused", "Failed/Evicted")
	l.bind("sg-0", "burstable", func(p *corev1.Pod) {
		p.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("10m")}
	})
	l.awaitPod("burstable", "Running, ready, running")
	l.clock.Step(statusUpdate)
	l.await("the node says so", func() bool {
		return pressure().Status == corev1.ConditionTrue && l.readiness("sg-0").Status == corev1.ConditionTrue
	})
	l.clock.Step(time.Minute - statusUpdate)
	l.await("the pressure is over", func() bool { return pressure().Status == corev1.ConditionFalse })
	l.bind("sg-0", "welcome", nil)
	l.awaitPod("welcome", "Running, ready, running")
	l.awaitPod("critical", "Running, ready, running")
	if evicted, rejected := l.happened("hungry", lifeEvicted), l.happened("hungry", lifeRejected); evicted != 1 || rejected != 1 {
		t.Errorf("%d evicted, %d rejected", evicted, rejected)
	}
}

func TestContainersTakeTheirTimeToStop(t *testing.T) {
	l := startLiving(t, Lean, scenario.PodLife{Name: "slow", StopAfter: fixed(10 * time.Second)})
	l.bind("sg-0", "web", nil)
	l.bind("sg-0", "killed", nil)
	l.awaitPod("web", "Running, ready, running")
	l.awaitPod("killed", "Running, ready, running")
	l.deletePod("web") // with 30 s of grace
	now, grace := metav1.Now(), int64(5)
	l.changePod("killed", func(p *corev1.Pod) { p.DeletionTimestamp, p.DeletionGracePeriodSeconds = &now, &grace })
	eventually(t, "neither runs", func() bool { return l.fleet.Live().PodsRunning == 0 })
	l.clock.Step(5 * time.Second)
	l.await("one is killed", func() bool { return l.pods["killed"] == nil })
	l.locked(func() {
		if l.pods["web"] == nil {
			t.Error("the other one ended within 5 s, want 10 s")
		}
	})
	l.clock.Step(5 * time.Second)
	l.await("the other one ends by itself", func() bool { return l.pods["web"] == nil })
	for name, want := range map[string]string{"killed": "Failed, Error(137)", "web": "Succeeded, Completed(0)"} {
		if all := l.statuses(name); all[len(all)-1] != want {
			t.Errorf("%s ended as %s, want %s", name, all[len(all)-1], want)
		}
	}
	if n := l.happened("slow", lifeStopTimedOut); n != 1 {
		t.Errorf("%d were counted as killed", n)
	}
}

func TestPodIsDeletedInAnyStage(t *testing.T) {
	pulls := scenario.PodLife{Name: "pulls", ImagePullErrorFor: fixed(24 * time.Hour)}
	inits := scenario.PodLife{Name: "inits", Init: scenario.ContainerRun{RunFor: fixed(time.Hour)}}
	for _, test := range []struct {
		name   string
		life   scenario.PodLife
		steps  int // of 5 s
		change func(*corev1.Pod)
		is     string
		last   string
	}{
		{"image pull", pulls, 0, nil, "Pending, ErrImagePull", "Failed, ErrImagePull"},
		{"image pull back-off", pulls, 1, nil, "Pending, ImagePullBackOff", "Failed, ImagePullBackOff"},
		{
			"init container", inits, 1, func(p *corev1.Pod) { p.Spec.InitContainers = []corev1.Container{{Name: "i"}} },
			"Pending, running, PodInitializing", "Failed, Completed(0), PodInitializing",
		},
		{"running", crashing(time.Hour), 1, nil, "Running, ready, running", "Succeeded, Completed(0)"},
		{
			"after its end", crashing(5 * time.Second), 2, nil,
			"Running, Error(1) x1 after Error(1)", "Failed, Error(1) x1 after Error(1)",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			l := startLiving(t, Lean, test.life)
			before := l.clock.Waiters()
			l.bind("sg-0", "web", test.change)
			l.await("it begins", func() bool { return len(l.stub.seen("PATCH", "/pods/web/status")) >= 2 })
			for range test.steps {
				l.clock.Step(5 * time.Second)
				eventually(t, "it has settled", func() bool { return l.settled("web") })
			}
			l.awaitPod("web", test.is)
			l.deletePod("web")
			l.await("it is gone", func() bool { return l.pods["web"] == nil })
			if all := l.statuses("web"); all[len(all)-1] != test.last {
				t.Errorf("it ended as %s, want %s", all[len(all)-1], test.last)
			}
			eventually(t, "no timer is left of it", func() bool { return l.clock.Waiters() <= before })
			if live := l.fleet.Live().PodsRunning; live != 0 {
				t.Errorf("%d pods run", live)
			}
		})
	}
}

// settled reports whether all that happened to a pod so far is reported.
func (l *living) settled(name string) bool {
	k := l.fleet.kubelets[0]
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, p := range k.pods {
		if p.name == name && p.lifecycle != nil && p.lifecycle.acked != p.lifecycle.version {
			return false
		}
	}
	return true
}

// A pod is deleted, with a grace period, after its containers have ended and before the API server knows: the server
// awaits the kubelet's word.
func TestPodDeletedWhileItsEndIsReported(t *testing.T) {
	l := startLiving(t, Lean)
	l.bind("sg-0", "job", ownedBy("Job"))
	l.awaitPod("job", "Running, ready, running")
	refused := make(chan struct{}, 100)
	l.update(func() {
		l.answer = func(w http.ResponseWriter, r request) bool {
			if r.method != "PATCH" || !strings.HasSuffix(r.path, "/pods/job/status") {
				return false
			}
			refused <- struct{}{}
			refuse(w, 500, metav1.StatusReasonInternalError, "not now")
			return true
		}
	})
	l.clock.Step(jobRunFor)
	<-refused
	l.deletePod("job")
	l.update(func() { l.answer = nil })
	eventually(t, "it is gone", func() (gone bool) {
		l.clock.Step(time.Second) // the wait for the next try
		l.locked(func() { gone = l.pods["job"] == nil })
		return gone
	})
	if all := l.statuses("job"); all[len(all)-1] != "Succeeded, Completed(0)" {
		t.Errorf("it ended as %s", all[len(all)-1])
	}
}

func TestLifeGoesOnAfterANodesRecovery(t *testing.T) {
	l := startLiving(t, Lean, crashing(time.Hour))
	l.bind("sg-0", "web", nil)
	l.awaitPod("web", "Running, ready, running")
	l.clock.Step(time.Hour)
	l.awaitPod("web", "Running, ready, running x1 after Error(1)")
	l.fleet.Fail(1)
	l.changePod("web", func(p *corev1.Pod) { condition(p, corev1.PodReady).Status = corev1.ConditionFalse })
	l.clock.Step(30 * time.Minute)
	must(t, l.fleet.Recover())
	l.awaitPod("web", "Running, ready, running x1 after Error(1)")
	eventually(t, "it runs", func() bool { return l.fleet.Live().PodsRunning == 1 })
	l.clock.Step(30 * time.Minute)
	l.awaitPod("web", "Running, ready, running x2 after Error(1)")
}

// A pod that is taken over Ready, and then made not Ready by the node lifecycle controller, is set right.
func TestAdoptedPodIsRepaired(t *testing.T) {
	l := startLiving(t, Lean, crashing(time.Hour))
	l.bind("sg-0", "web", nil)
	l.awaitPod("web", "Running, ready, running")
	l.fleet.Fail(1)
	must(t, l.fleet.Recover())
	eventually(t, "it is taken over", func() bool { return l.fleet.Live().PodsRunning == 1 })
	l.changePod("web", func(p *corev1.Pod) { condition(p, corev1.PodReady).Status = corev1.ConditionFalse })
	l.awaitPod("web", "Running, ready, running")
}

// A life to which nothing happens costs the requests of a pod without one.
func TestLifeWithoutStagesChangesNoRequest(t *testing.T) {
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
