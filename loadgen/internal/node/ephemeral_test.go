package node

import (
	"encoding/json"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/stormglass/stormglass/loadgen/scenario"
)

// `kubectl debug` waits until its container runs, and attaches to it.
func TestEphemeralContainerRunsUntilItsPodEnds(t *testing.T) {
	for name, lives := range map[string][]scenario.PodLife{"no life": nil, "a life": {{Name: "idle"}}} {
		t.Run(name, func(t *testing.T) {
			l := startLiving(t, Lean, lives...)
			l.bind("sg-0", "web", nil)
			l.awaitPod("web", "Running, ready, running")
			for _, c := range []string{"debugger", "again"} {
				l.changePod("web", func(p *corev1.Pod) {
					p.Generation++
					p.Spec.EphemeralContainers = append(p.Spec.EphemeralContainers, corev1.EphemeralContainer{
						EphemeralContainerCommon: corev1.EphemeralContainerCommon{Name: c, Image: "busybox"},
					})
				})
				l.await(c+" runs", func() bool {
					start, end := startOf(l.pods["web"], c)
					return !start.IsZero() && end.IsZero()
				})
			}
			l.locked(func() {
				all := l.pods["web"].Status.EphemeralContainerStatuses
				if s := all[0]; len(all) != 2 || s.Image != "busybox" || s.ContainerID != "stormglass://uid-web/debugger" || s.RestartCount != 0 {
					t.Errorf("statuses %+v", all)
				}
			})
			l.awaitPod("web", "Running, ready, running")
			l.await("the Event", func() bool {
				return slices.ContainsFunc(l.events, func(e corev1.Event) bool {
					return e.Reason == "Started" && e.InvolvedObject.FieldPath == "spec.ephemeralContainers{debugger}"
				})
			})
			l.deletePod("web")
			l.await("it is gone", func() bool { return l.pods["web"] == nil })
			l.locked(func() {
				writes := l.stub.seen("PATCH", "/pods/web/status")
				var last corev1.Pod
				must(t, json.Unmarshal(writes[len(writes)-1].body, &last))
				for _, s := range last.Status.EphemeralContainerStatuses {
					if s.State.Terminated == nil {
						t.Errorf("%s has not ended: %+v", s.Name, s.State)
					}
				}
				if len(last.Status.EphemeralContainerStatuses) != 2 {
					t.Errorf("the last status is %+v", last.Status)
				}
			})
		})
	}
}
