package node

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stormglass/stormglass/loadgen/scenario"
)

func share(t *testing.T, text string) *scenario.Bound {
	b := &scenario.Bound{}
	must(t, b.UnmarshalText([]byte(text)))
	return b
}

func podNamed(name string, change func(*corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, Labels: map[string]string{}, Annotations: map[string]string{}}}
	if change != nil {
		change(p)
	}
	return p
}

func TestLivesAreGivenInShares(t *testing.T) {
	web := scenario.PodMatch{Labels: map[string]string{"app": "web"}}
	plan := func(seed int64) *plan {
		return &plan{Config: Config{Seed: seed, Spec: scenario.Nodes{PodLives: []scenario.PodLife{
			{Name: "five", Match: web, Share: share(t, "5%")},
			{Name: "twenty", Share: share(t, "20%")},
			{Name: "rest", Match: web},
		}}}}
	}
	const n = 20_000
	count := map[string]int{}
	same := true
	for i := range n {
		labels := map[string]string{}
		if i%2 == 0 {
			labels["app"] = "web"
		}
		pod := podNamed(fmt.Sprintf("pod-%d", i), func(p *corev1.Pod) { p.Labels = labels })
		name := func(seed int64) string {
			if l := plan(seed).lifeOf(pod); l != nil {
				return l.Name
			}
			return "none"
		}
		one := name(1)
		count[one+" "+labels["app"]]++
		if one != name(1) {
			t.Fatalf("pod %d gets another life in the second call", i)
		}
		same = same && one == name(2)
	}
	if same {
		t.Error("another seed results in the same lives")
	}
	// Five standard deviations of a binomial distribution of n/2.
	for key, want := range map[string]float64{"five web": .05, "twenty web": .20, "rest web": .75, "twenty ": .20, "none ": .80, "five ": 0, "rest ": 0} {
		if got := float64(count[key]) / (n / 2); got < want-0.022 || got > want+0.022 || want == 0 && got != 0 {
			t.Errorf("%q: %.3f of the pods, want %.3f", key, got, want)
		}
	}
}

func TestAnnotationsOfAPodStandAboveItsLife(t *testing.T) {
	p := &plan{Config: Config{Spec: scenario.Nodes{PodLives: []scenario.PodLife{
		{Name: "jobs", Match: scenario.PodMatch{Owner: "Job"}, ContainerRun: scenario.ContainerRun{RunFor: always(time.Minute), Reason: scenario.OOMKilled}},
		{Name: "asked", Match: scenario.PodMatch{Annotations: map[string]string{scenario.PodLifeAnnotation: "asked"}}},
	}}}}
	for _, test := range []struct {
		name        string
		annotations map[string]string
		owner       string
		want        string
	}{
		{"no life", nil, "ReplicaSet", "none"},
		{"by its owner", nil, "Job", "jobs 1m0s 137"},
		{"by name", map[string]string{scenario.PodLifeAnnotation: "asked"}, "ReplicaSet", "asked 0s 0"},
		{"not restarted", nil, "Workflow", "job 10s 0"},
		{"of a Job, by name", map[string]string{scenario.PodLifeAnnotation: "asked"}, "Job", "asked 10s 0"},
		{"of an unknown name", map[string]string{scenario.PodLifeAnnotation: "lost"}, "Job", "jobs 1m0s 137"},
		{"another time", map[string]string{scenario.ExitAfterAnnotation: "3s"}, "Job", "jobs 3s 137"},
		{"another code", map[string]string{scenario.ExitAfterAnnotation: "3s", scenario.ExitCodeAnnotation: "2"}, "Job", "jobs 3s 2"},
		{"annotated only", map[string]string{scenario.ExitAfterAnnotation: "3s", scenario.ExitCodeAnnotation: "1"}, "ReplicaSet", "annotated 3s 1"},
		{"at once", map[string]string{scenario.ExitAfterAnnotation: "0s"}, "ReplicaSet", "annotated 1ns 0"},
		{"no time", map[string]string{scenario.ExitAfterAnnotation: "soon"}, "ReplicaSet", "none"},
		{"no code", map[string]string{scenario.ExitAfterAnnotation: "3s", scenario.ExitCodeAnnotation: "many"}, "ReplicaSet", "annotated 3s 0"},
	} {
		pod := podNamed("p", ownedBy(test.owner))
		pod.Annotations = test.annotations
		if test.owner == "Workflow" {
			pod.Spec.RestartPolicy = corev1.RestartPolicyNever
		}
		got := "none"
		if l := p.lifeOf(pod); l != nil {
			got = fmt.Sprintf("%s %s %d", l.Name, l.RunFor.Median, l.Code())
		}
		if got != test.want {
			t.Errorf("%s: %s, want %s", test.name, got, test.want)
		}
	}
}

// A pod without a life costs one look at its annotations and owner.
func BenchmarkPodWithoutLife(b *testing.B) {
	p := &plan{}
	pod := podNamed("p", ownedBy("ReplicaSet"))
	b.ReportAllocs()
	for b.Loop() {
		if p.lifeOf(pod) != nil {
			b.Fatal("lifeOf returns a PodLife for a pod without one")
		}
	}
}

func TestEventsOfAPodAreCountedUpAndDropped(t *testing.T) {
	var e eventLog
	now := time.Unix(1000, 0)
	name, count := e.observe("Started", now)
	*name = "web.1"
	if again, n := e.observe("Started", now); count != 1 || n != 2 || *again != "web.1" {
		t.Errorf("observed %d times and then %d, as %s", count, n, *again)
	}
	for i := range eventBurst - 2 {
		if _, n := e.observe(fmt.Sprint(i), now); n != 1 {
			t.Errorf("Event %d of the burst was observed %d times", i, n)
		}
	}
	if _, n := e.observe("BackOff", now); n != 0 {
		t.Error("the node posted an Event beyond the burst")
	}
	if _, n := e.observe("BackOff", now.Add(eventRefill)); n != 1 {
		t.Errorf("5 minutes later it is observed %d times, want once", n)
	}
}
