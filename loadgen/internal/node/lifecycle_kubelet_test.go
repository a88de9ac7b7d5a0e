package node

import (
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/stormglass/stormglass/loadgen/scenario"
)

// Statuses of pods' lives in their order, as a kubelet 1.37.1 reported them (loadgen/lab/records/pod-lives.md).
func TestStatusesOfAKubelet(t *testing.T) {
	always := corev1.ContainerRestartPolicyAlways
	seconds := func(n time.Duration) scenario.Spread { return fixed(n * time.Second) }
	once := restarts(corev1.RestartPolicyNever)
	const creating, sandbox, deletion = "Pending, ContainerCreating", "", ""
	const running = "Running, ready, running"
	for _, test := range []struct {
		name   string
		life   scenario.PodLife
		change func(*corev1.Pod)
		until  string // then it is deleted; empty: it is not
		want   []string
	}{
		{"completes", scenario.PodLife{ContainerRun: scenario.ContainerRun{RunFor: seconds(2)}}, once, "",
			[]string{creating, sandbox, running, "Running, Completed(0)", "Succeeded, Completed(0)"}},
		{"crashes", scenario.PodLife{ContainerRun: scenario.ContainerRun{RunFor: seconds(2), ExitCode: 1}}, nil, "Running, ready, running x2 after Error(1)",
			[]string{
				creating, sandbox, running, "Running, Error(1)", "Running, ready, running x1 after Error(1)", "Running, Error(1) x1 after Error(1)",
				"Running, CrashLoopBackOff x1 after Error(1)", "Running, ready, running x2 after Error(1)", deletion, "Succeeded, Completed(0) x2 after Error(1)",
			}},
		{"no image", scenario.PodLife{ImagePullErrorFor: seconds(3600)}, nil, "Pending, ImagePullBackOff",
			[]string{creating, sandbox, "Pending, ErrImagePull", "Pending, ImagePullBackOff", creating, creating, "Failed, ContainerStatusUnknown(137)"}},
		{"sidecar", scenario.PodLife{ContainerRun: scenario.ContainerRun{RunFor: seconds(2)}}, func(p *corev1.Pod) {
			once(p)
			p.Spec.InitContainers = []corev1.Container{{Name: "sidecar", RestartPolicy: &always}}
		}, "", []string{
			"Pending, PodInitializing, PodInitializing", sandbox, "Pending, running, PodInitializing", "Running, ready, running, running",
			"Running, running, Completed(0)", "Running, Completed(0), Completed(0)", "Succeeded, Completed(0), Completed(0)",
		}},
		{"init container", scenario.PodLife{Init: scenario.ContainerRun{RunFor: seconds(3600)}},
			func(p *corev1.Pod) { p.Spec.InitContainers = []corev1.Container{{Name: "i"}} }, "Pending, running, PodInitializing",
			[]string{
				"Pending, PodInitializing, PodInitializing", sandbox, "Pending, running, PodInitializing", deletion,
				"Pending, Completed(0), PodInitializing", "Failed, Completed(0), PodInitializing",
			}},
		{"liveness", scenario.PodLife{LivenessFailsAfter: seconds(5)}, nil, "Running, ready, running x1 after Error(137)",
			[]string{creating, sandbox, running, "Running, ready, running x1 after Error(137)", deletion, "Succeeded, Completed(0) x1 after Error(137)"}},
		{"liveness, once", scenario.PodLife{LivenessFailsAfter: seconds(5)}, once, "",
			[]string{creating, sandbox, running, "Running, Error(137)", "Failed, Error(137)"}},
		{"evicted", scenario.PodLife{Evict: scenario.Eviction{After: seconds(5), Condition: "MemoryPressure", For: scenario.Duration(time.Minute)}}, nil, "",
			[]string{creating, sandbox, running, "Succeeded, Completed(0)"}},
		{"evicted without a container", scenario.PodLife{
			StopAfter: seconds(60), Container: "c", ContainerRun: scenario.ContainerRun{RunFor: seconds(2), ExitCode: 1},
			Evict: scenario.Eviction{After: seconds(9), Condition: "MemoryPressure", For: scenario.Duration(time.Minute)},
		}, nil, "", []string{
			creating, sandbox, running, "Running, Error(1)", "Running, ready, running x1 after Error(1)", "Running, Error(1) x1 after Error(1)",
			"Failed/Evicted, ContainerStatusUnknown(137) x1 after Error(1)",
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			test.life.Name = "life"
			l := startLiving(t, Kubelet, test.life)
			l.bind("sg-0", "web", test.change)
			deleted := false
			var got []string
			defer func() {
				if t.Failed() {
					t.Logf("statuses:\n%s", strings.Join(got, "\n"))
				}
			}()
			eventually(t, "its statuses are\n"+strings.Join(test.want, "\n"), func() bool {
				l.clock.Step(100 * time.Millisecond)
				eventually(t, "it has settled", func() bool { return l.settled("web") })
				got = l.statuses("web")
				if !deleted && test.until != "" && slices.Contains(got, test.until) {
					deleted = true
					l.deletePod("web")
				}
				return slices.Equal(got, test.want)
			})
		})
	}
}

// A pod that is deleted before its containers ran gets the phase Failed, with or without a PodLife.
func TestPodIsDeletedBeforeItStarts(t *testing.T) {
	always := corev1.ContainerRestartPolicyAlways
	for _, test := range []struct {
		name     string
		fidelity string
		change   func(*corev1.Pod)
		want     []string
	}{
		{"kubelet", Kubelet, nil, []string{"Pending, ContainerCreating", "", "", "Pending, ContainerCreating", "Failed, ContainerStatusUnknown(137)"}},
		{"lean", Lean, nil, []string{"Pending, ContainerCreating", "Failed, ContainerStatusUnknown(137)"}},
		{"shared", Shared, nil, []string{"Pending, ContainerCreating", "Failed, ContainerStatusUnknown(137)"}},
		{"init containers", Lean, func(p *corev1.Pod) {
			p.Spec.InitContainers = []corev1.Container{{Name: "i"}, {Name: "sidecar", RestartPolicy: &always}}
		}, []string{"Pending, PodInitializing, PodInitializing, PodInitializing", "Failed, ContainerStatusUnknown(137), PodInitializing, PodInitializing"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			s, _ := started(t, func(c *Config) { c.Spec.Fidelity, c.Spec.PodStart = test.fidelity, fixed(time.Hour) })
			s.bind("sg-0", "web", test.change)
			reports := 1
			if test.fidelity == Kubelet {
				reports = 2 // of its sandbox too
			}
			s.await("it is created", func() bool { return len(s.seen("PATCH", "/pods/web/status")) == reports })
			s.deletePod("web")
			s.await("it is gone", func() bool { return s.pods["web"] == nil })
			if got := s.statuses("web"); !slices.Equal(got, test.want) {
				t.Errorf("statuses\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(test.want, "\n"))
			}
		})
	}
}
