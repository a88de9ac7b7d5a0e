package node

import (
	"net/http"
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
