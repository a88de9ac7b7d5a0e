package node

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stormglass/stormglass/loadgen/scenario"
)

func TestContainersTakeTheirTimeToStop(t *testing.T) {
	l := startLiving(t, Lean, scenario.PodLife{Name: "slow", StopAfter: fixed(10 * time.Second)})
	l.bind("sg-0", "web", nil)
	l.bind("sg-0", "killed", nil)
	l.awaitPod("web", "Running, ready, running")
	l.awaitPod("killed", "Running, ready, running")
	eventually(t, "both run", func() bool { return l.fleet.Live().PodsRunning == 2 })
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
		t.Errorf("the node counted %d kills", n)
	}
}

func TestPodIsDeletedInAnyStage(t *testing.T) {
	pulls := scenario.PodLife{Name: "pulls", ImagePullErrorFor: fixed(24 * time.Hour)}
	inits := scenario.PodLife{Name: "inits", Init: scenario.ContainerRun{RunFor: fixed(time.Hour)}}
	withInit := func(p *corev1.Pod) { p.Spec.InitContainers = []corev1.Container{{Name: "i"}} }
	type step struct {
		after time.Duration
		is    string
	}
	const (
		running = "Running, ready, running"
		again   = "Running, ready, running x1 after Error(1)"
		ended   = "Running, Error(1) x1 after Error(1)"
	)
	for _, test := range []struct {
		name   string
		life   scenario.PodLife
		change func(*corev1.Pod)
		starts string
		steps  []step
		last   string
	}{
		{"image pull", pulls, nil, "Pending, ContainerCreating", nil, "Failed, ContainerStatusUnknown(137)"},
		{"image pull error", pulls, nil, "Pending, ContainerCreating", []step{{noticed, "Pending, ErrImagePull"}}, "Failed, ContainerStatusUnknown(137)"},
		{"init container", inits, withInit, "Pending, running, PodInitializing", nil, "Failed, Completed(0), PodInitializing"},
		{"running", crashing(time.Hour), nil, running, []step{{time.Minute, running}}, "Succeeded, Completed(0)"},
		{"after its end", crashing(5 * time.Second), nil, running, []step{{5 * time.Second, again}, {5 * time.Second, ended}}, "Failed, Error(1) x1 after Error(1)"},
		{"in its back-off", crashing(5 * time.Second), nil, running,
			[]step{{5 * time.Second, again}, {5 * time.Second, ended}, {15 * time.Second, "Running, CrashLoopBackOff x1 after Error(1)"}}, "Failed, Error(1) x1 after Error(1)"},
	} {
		t.Run(test.name, func(t *testing.T) {
			l := startLiving(t, Lean, test.life)
			before := l.clock.Waiters()
			l.bind("sg-0", "web", test.change)
			l.awaitPod("web", test.starts)
			if test.life.Name == pulls.Name {
				l.await("an attempt", func() bool { return slices.Contains(l.told("web"), "Failed") })
			}
			for _, step := range test.steps {
				l.clock.Step(step.after)
				l.awaitPod("web", step.is)
			}
			l.deletePod("web")
			l.await("it is gone", func() bool { return l.pods["web"] == nil })
			if all := l.statuses("web"); all[len(all)-1] != test.last {
				t.Errorf("last status = %s, want %s", all[len(all)-1], test.last)
			}
			eventually(t, "no timer is left of it", func() bool { return l.clock.Waiters() <= before })
			if live := l.fleet.Live().PodsRunning; live != 0 {
				t.Errorf("%d pods run", live)
			}
		})
	}
}

// A pod is deleted, with a grace period, after its containers have ended and before the API server knows it: the server
// waits for the kubelet.
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
		t.Errorf("last status = %s, want Succeeded, Completed(0)", all[len(all)-1])
	}
}
