package node

import (
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/stormglass/stormglass/loadgen/scenario"
)

func TestShapesAreDealtOutByWeight(t *testing.T) {
	s := newStub(t)
	f := s.fleet(12, func(c *Config) {
		c.Spec.LeaseDuration = scenario.Duration(90 * time.Second)
		c.Spec.Pools = []scenario.NodePool{{Name: "small"}, {Name: "large", Weight: 0.5, CPU: "64", Memory: "1Ti", Pods: 250}}
	})
	must(t, f.Start(t.Context()))
	s.mu.Lock()
	defer s.mu.Unlock()
	count := map[string]int{}
	for _, n := range s.nodes {
		room := n.Status.Allocatable
		count[fmt.Sprint(n.Labels[corev1.LabelInstanceTypeStable], room.Cpu(), room.Memory(), room.Pods())]++
		if got := *s.leases[n.Name].Spec.LeaseDurationSeconds; got != 90 {
			t.Errorf("got a Lease of %d s", got)
		}
	}
	if len(count) != 2 || count["small4 8Gi 10"] != 8 || count["large64 1Ti 250"] != 4 {
		t.Errorf("shapes %v", count)
	}
	if size := f.kubelets[0].ips.size(); size < 500 {
		t.Errorf("got addresses for %d pods per node", size)
	}
}

func TestPoolsAreExactAndDrawnFromTheSeed(t *testing.T) {
	s := newStub(t)
	deal := func(seed int64, pools ...scenario.NodePool) []place {
		return s.fleet(900, func(c *Config) { c.Seed, c.Spec.Pools = seed, pools }).plan.places
	}
	pools := []scenario.NodePool{{Name: "a", Weight: 3}, {Name: "b"}, {Name: "c", Weight: 0.5}, {Name: "d", Count: 9}}
	a := deal(1, pools...)
	if again, other := deal(1, pools...), deal(2, pools...); !slices.Equal(a, again) || slices.Equal(a, other) {
		t.Error("the order depends on more than the seed, or not on the seed")
	}
	count := func(places []place) (n [4]int) {
		for _, p := range places {
			n[p.pool]++
		}
		return n
	}
	if got := count(a); got != [4]int{594, 198, 99, 9} {
		t.Errorf("dealt %v", got)
	}
	if got := count(deal(1, pools[3])); got != [4]int{9, 891} {
		t.Errorf("with nodes in no pool, dealt %v", got)
	}
}

func TestNodesRegisterWithTheirPool(t *testing.T) {
	const size = 15 << 10
	s := newStub(t)
	f := s.fleet(4, func(c *Config) {
		c.Taints = []corev1.Taint{{Key: "run", Effect: corev1.TaintEffectNoSchedule}}
		c.Spec.ObjectSize = size
		c.Spec.Pools = []scenario.NodePool{{
			Name: "gpu", Count: 2, Resources: map[string]string{"example.com/gpu": "8"}, Zones: []string{"a", "b"}, Images: []string{"example.com/cuda:12"},
			Labels: map[string]string{"team": "blue", "node-role.kubernetes.io/gpu": ""},
			Taints: []scenario.NodeTaint{{Key: "gpu", Value: "yes", Effect: "NoExecute"}},
		}}
	})
	must(t, f.Start(t.Context()))
	s.mu.Lock()
	defer s.mu.Unlock()
	zones := map[string]int{}
	for i, k := range f.kubelets {
		n := s.nodes[k.name]
		if got := n.Size(); got < size-200 || got > size+200 {
			t.Errorf("%s has %d bytes, want %d", n.Name, got, size)
		}
		gpus := n.Status.Allocatable["example.com/gpu"]
		if f.plan.poolOf(i).Name != "gpu" {
			if n.Labels["team"] != "" || len(n.Spec.Taints) != 1 || !gpus.IsZero() {
				t.Errorf("%s is in no pool, but has labels %v, taints %v, %s GPUs", n.Name, n.Labels, n.Spec.Taints, &gpus)
			}
			continue
		}
		zones[n.Labels[corev1.LabelTopologyZone]]++
		_, admins := n.Labels["node-role.kubernetes.io/gpu"] // NodeRestriction refuses it
		if n.Labels["team"] != "blue" || admins || gpus.Value() != 8 || n.Status.Images[0].Names[0] != "example.com/cuda:12" {
			t.Errorf("%s has labels %v, %s GPUs, first image %v", n.Name, n.Labels, &gpus, n.Status.Images[0])
		}
		if taints := n.Spec.Taints; len(taints) != 2 || taints[1] != (corev1.Taint{Key: "gpu", Value: "yes", Effect: corev1.TaintEffectNoExecute}) {
			t.Errorf("%s has taints %v", n.Name, taints)
		}
		if _, pulling := k.images.need("example.com/cuda:12", time.Now(), func() time.Duration { return time.Hour }); pulling {
			t.Error("the node pulls an image that is present")
		}
	}
	if zones["a"] != 1 || zones["b"] != 1 {
		t.Errorf("zones %v", zones)
	}
}

func TestDrawsFollowTheSpread(t *testing.T) {
	spread := scenario.Spread{Median: 2 * time.Second, P99: 20 * time.Second}
	var below, above int
	const n = 20_000
	for i := range n {
		at := spread.At(draw(1, "pod", "ns", fmt.Sprintf("web-%d", i)))
		if at < spread.Median {
			below++
		}
		if at > spread.P99 {
			above++
		}
	}
	// Five standard deviations of a binomial distribution.
	if below < n/2-354 || below > n/2+354 || above < 200-70 || above > 200+70 {
		t.Errorf("of %d draws %d are below the median and %d above the 99th percentile", n, below, above)
	}
	if draw(1, "a", "bc") == draw(1, "ab", "c") || draw(1, "a") == draw(2, "a") || draw(1, "a") != draw(1, "a") {
		t.Error("a draw does not depend on the seed and on each of its names")
	}
}

func TestImagesArePulledOnceAndOneAfterTheOther(t *testing.T) {
	var s images
	now := time.Unix(1000, 0)
	takes := func() time.Duration { return 10 * time.Second }
	for _, test := range []struct {
		image   string
		after   time.Duration // of asking
		there   time.Duration
		pulling bool
	}{
		{"a", 0, 10 * time.Second, true},
		{"b", 0, 20 * time.Second, true},               // waits for a
		{"a", 5 * time.Second, 10 * time.Second, true}, // the same pull
		{"a", 30 * time.Second, 10 * time.Second, false},
		{"c", 30 * time.Second, 40 * time.Second, true},
	} {
		at, pulling := s.need(test.image, now.Add(test.after), takes)
		if at.Sub(now) != test.there || pulling != test.pulling {
			t.Errorf("%s, needed after %v: present after %v, pulling %v", test.image, test.after, at.Sub(now), pulling)
		}
	}
}

func TestPodWaitsForItsImage(t *testing.T) {
	clock := newFakeClock(time.Now())
	hour := scenario.Spread{Median: time.Hour, P99: time.Hour}
	s, f := started(t, func(c *Config) {
		c.clock = clock
		c.Spec.ImagePull = hour
		const never = scenario.Duration(10 * 365 * 24 * time.Hour) // the clock goes an hour per millisecond
		c.Spec.LeaseRenew, c.Spec.StatusReport = never, never
	})
	s.bind("sg-0", "first", nil)
	s.await("it says that it pulls, and waits", func() bool {
		st := s.pods["first"].Status
		return len(s.told("first")) == 1 && len(st.ContainerStatuses) == 1 && st.ContainerStatuses[0].State.Waiting != nil
	})
	eventually(t, "it runs when the image is there", func() bool {
		clock.Step(time.Hour) // once more if the event was posted before the pull's timer was set
		return f.Live().PodsRunning == 1
	})
	s.bind("sg-0", "second", nil)
	eventually(t, "the next one runs at once", func() bool { return f.Live().PodsRunning == 2 })
	s.await("all Events", func() bool { return len(s.told("first")) == 4 && len(s.told("second")) == 3 })
	clock.Step(time.Second) // events of a pod are named by their time
	s.deletePod("second")
	s.await("and its end", func() bool { return len(s.told("second")) == 4 })
	s.mu.Lock()
	defer s.mu.Unlock()
	a, b := s.told("first"), s.told("second")
	slices.Sort(a[1:]) // events of one moment are posted together
	slices.Sort(b[:3])
	if !slices.Equal(a, []string{"Pulling", "Created", "Pulled", "Started"}) || !slices.Equal(b, []string{"Created", "Pulled", "Started", "Killing"}) {
		t.Errorf("events %v and %v", a, b)
	}
	names := map[string]bool{}
	for _, e := range s.events {
		names[e.Name] = true
		if o := e.InvolvedObject; o.FieldPath != "spec.containers{c}" || o.UID == "" || e.Source.Host != "sg-0" || e.Namespace != "ns" {
			t.Errorf("event %+v", e)
		}
	}
	if len(names) != len(s.events) {
		t.Errorf("got %d names for %d events", len(names), len(s.events))
	}
}

// told returns the reasons of a pod's events. The caller holds the lock.
func (s *stub) told(pod string) []string {
	var out []string
	for _, e := range s.events {
		if e.InvolvedObject.Name == pod {
			out = append(out, e.Reason)
		}
	}
	return out
}

func TestTokenIsRefreshed(t *testing.T) {
	clock := newFakeClock(time.Now())
	s, f := started(t, func(c *Config) {
		c.clock = clock
		c.Spec.LeaseRenew, c.Spec.StatusReport = scenario.Duration(24*time.Hour), scenario.Duration(24*time.Hour)
	})
	waiters := clock.Waiters()
	s.bind("sg-0", "a", withToken)
	eventually(t, "its volumes are waited for", func() bool { return clock.Waiters() > waiters })
	clock.Step(time.Second)
	eventually(t, "it runs", func() bool { return f.Live().PodsRunning == 1 })
	tokens := func() int { return len(s.seen("POST", "/token")) }
	clock.Step(47 * time.Minute)
	s.locked(func() {
		if tokens() != 1 {
			t.Errorf("got %d tokens before the first is old", tokens())
		}
	})
	clock.Step(2 * time.Minute) // 80% of 3607 s
	s.await("it gets another", func() bool { return tokens() == 2 })
}

func TestKubeProxyHasAnIdentityAndAConnectionOfItsOwn(t *testing.T) {
	s := newStub(t)
	f := s.fleet(2, func(c *Config) { c.Spec.KubeProxy = true })
	must(t, f.Start(t.Context()))
	eventually(t, "all is watched", func() bool { return f.Live().Watches == 20 })
	s.locked(func() {
		got := map[string]int{}
		for _, r := range s.requests {
			if r.user == "system:kube-proxy" {
				got[r.path]++
			}
		}
		want := []string{
			"/api/v1/nodes", "/api/v1/services", "/apis/discovery.k8s.io/v1/endpointslices", "/apis/networking.k8s.io/v1/servicecidrs",
		}
		if !slices.Equal(sortedKeys(got), want) || got[want[0]] != 2 {
			t.Errorf("requests of kube-proxies = %v", got)
		}
		if len(s.conns) != 4 {
			t.Errorf("got %d connections of two nodes", len(s.conns))
		}
	})
	f.Fail(0.5)
	s.await("both connections of the failed node are gone", func() bool { return len(s.conns) == 2 })
}
