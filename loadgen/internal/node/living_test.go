package node

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stormglass/stormglass/loadgen/scenario"
)

// living is a node whose pods have lives, with a clock that only the test moves.
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

// crashing returns a life whose containers fail after some time.
func crashing(after time.Duration) scenario.PodLife {
	return scenario.PodLife{Name: "crashing", ContainerRun: scenario.ContainerRun{RunFor: fixed(after), ExitCode: 1}}
}

// tell returns a pod's status in a line: its phase, whether it is Ready, and each container.
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

// awaitPod waits for a pod's status, in the form of tell.
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

// statuses returns the statuses written for a pod, one line each.
func (s *stub) statuses(name string) (all []string) {
	s.locked(func() {
		for _, r := range s.seen("PATCH", "/pods/"+name+"/status") {
			var p corev1.Pod
			must(s.t, json.Unmarshal(r.body, &p))
			all = append(all, tell(p.Status))
		}
	})
	return all
}

// settled reports whether all changes of a pod so far are reported, and the kubelet knows of its deletion.
func (l *living) settled(name string) bool {
	deleting := false
	l.locked(func() { deleting = l.pods[name] != nil && l.pods[name].DeletionTimestamp != nil })
	k := l.fleet.kubelets[0]
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, p := range k.pods {
		if p.name == name && (deleting && p.state < stopping || p.lifecycle != nil && p.state != stopping && !p.lifecycle.done && p.lifecycle.acked != p.lifecycle.version) {
			return false
		}
	}
	return true
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
		if kind == "Job" {
			p.Spec.RestartPolicy = corev1.RestartPolicyNever
		}
	}
}

// unhealthy counts the probe failures that Events report. No other Event may be repeated. The stub is locked.
func (l *living) unhealthy(pod string) int {
	if !slices.Contains(l.told(pod), "Unhealthy") {
		return 0
	}
	return 1 + len(l.countedUp(pod))
}

// countedUp returns the patches of a pod's Events. The stub is locked.
func (l *living) countedUp(pod string) (all []request) {
	for _, r := range l.requests {
		if r.method == "PATCH" && strings.HasPrefix(r.path, "/api/v1/namespaces/ns/events/"+pod+".") {
			all = append(all, r)
		}
	}
	return all
}
