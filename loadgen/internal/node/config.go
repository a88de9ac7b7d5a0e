package node

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"maps"
	"math/bits"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/clock"

	"github.com/stormglass/stormglass/controlplane/control"
	"github.com/stormglass/stormglass/loadgen/internal/load"
	"github.com/stormglass/stormglass/loadgen/internal/samples"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

const (
	// Kubelet simulates all API requests of a real kubelet. Each node has its own identity, connection and watches.
	Kubelet = "kubelet"
	// Lean is like Kubelet, but nodes do not send requests that change nothing, such as the GET before a PATCH. A pod
	// costs about a third of the requests that it costs with Kubelet.
	Lean = "lean"
	// Shared uses one watch of pods and one of nodes for the whole fleet, over a few connections with one identity.
	// Each node sends the same writes as with Lean.
	Shared = "shared"
)

// Fidelities returns the valid values of Spec.Fidelity in a Config.
func Fidelities() []string { return []string{Kubelet, Lean, Shared} }

// Config configures a Fleet.
type Config struct {
	// Spec is the nodes section of the scenario, with its defaults set.
	Spec scenario.Nodes
	// Release is the release of the kubelets. The zero Release means the newest.
	Release control.Release
	// Identities provides the nodes' client credentials.
	Identities Identities
	// Restricted means that RBAC authorizes the nodes' requests instead of the Node authorizer, for example because
	// nodes authenticate as ServiceAccounts. If RBAC refuses tokens, ConfigMaps or Secrets, pods start without them.
	// Fidelity "shared" is always restricted.
	Restricted bool
	// Labels are the labels of each Node, such as the run's id. A key under kubernetes.io or k8s.io is an error unless
	// a kubelet may set it. If Labels is not empty, the fleet never takes over an existing Node without these labels.
	Labels map[string]string
	// Taints are the taints of each Node. They keep away pods that do not belong to the run. May be empty.
	Taints []corev1.Taint
	// Cloud is the simulated cloud that has an instance for each node. With a Cloud, nodes register like kubelets with
	// --cloud-provider=external. Nil means no cloud.
	Cloud Cloud
	// Label sets those labels of a Node that a kubelet may not set itself. Nil means that the nodes get no such labels.
	Label func(ctx context.Context, node string, labels map[string]string) error
	// NamePrefix is the prefix of the node names: "sg-" gives sg-0, sg-1, ...
	NamePrefix string
	// Seed determines all random choices: phases of heartbeats, jitter, which nodes fail.
	Seed int64
	// Registerer registers the fleet's metrics. Nil means that the fleet exports no metrics.
	Registerer prometheus.Registerer
	// Samples records when a node's watch breaks and when the watch must start again with a list. Nil means that
	// nothing is recorded.
	Samples *samples.Recorder
	// Use returns the CPU usage of a pod with these labels: the current usage in cores, and the total so far in CPU
	// seconds. ok is false if no demand in the scenario applies to the pod. Nil means that no pod has a demand.
	Use func(labels map[string]string) (cores, seconds float64, ok bool)
	// API is the kubelet API that the nodes serve. Nil means none.
	API *API
	// Part selects the nodes that this Fleet simulates when several processes share the nodes. The zero value means all
	// nodes. The nodes of a part serve no kubelet API, and the coordinating process launches their instances in the
	// Cloud.
	Part load.Share
	// Log receives a line for each noteworthy event. May be nil.
	Log func(format string, args ...any)

	clock clock.WithDelayedExecution // nil means the real clock; tests set another
}

// Cloud is the part of control.Client that handles instances.
type Cloud interface {
	ChangeInstances(context.Context, control.Instances) error
}

// plan is a validated Config.
type plan struct {
	Config
	pools        []pool
	places       []place // the pool of each node and the node's position there, by node number
	leaseSeconds int32
	// restartMost is the longest back-off before a container restart.
	restartMost time.Duration
	// podBits is log2 of the number of pod addresses per node.
	podBits int
}

// validate checks a Config, and sets defaults.
func (c Config) validate() (*plan, error) {
	p := &plan{Config: c}
	if p.clock == nil {
		p.clock = clock.RealClock{}
	}
	if p.Log == nil {
		p.Log = func(string, ...any) {}
	}
	if p.Release == (control.Release{}) {
		p.Release = control.Newest()
	}
	p.Labels = maps.Clone(c.Labels)
	s := c.Spec
	var errs []error
	fail := func(format string, args ...any) { errs = append(errs, fmt.Errorf("nodes: "+format, args...)) }
	if s.Count < 1 {
		fail("count is %d (at least 1)", s.Count)
	}
	if !slices.Contains(Fidelities(), s.Fidelity) {
		fail("fidelity %q is unknown (%s)", s.Fidelity, strings.Join(Fidelities(), ", "))
	}
	if c.Part.Part(s.Count) < 1 && s.Count > 0 {
		fail("part %d of %d has no nodes, because count is %d", c.Part.Index, c.Part.Of, s.Count)
	}
	if !c.Part.Whole() && c.API != nil {
		fail("the kubelet API requires that one process simulates all nodes")
	}
	if s.Later < 0 || s.Later > s.Count {
		fail("later is %d (from 0 to count, which is %d)", s.Later, s.Count)
	}
	if c.Identities == nil {
		fail("Config.Identities is nil")
	}
	if s.Zones < 1 || s.Pods < 1 {
		fail("zones is %d and pods is %d (each at least 1)", s.Zones, s.Pods)
	}
	if s.LeaseRenew.D() <= 0 || s.StatusReport.D() <= 0 || s.RegisterRate <= 0 {
		fail("leaseRenew, statusReport and registerRate must be over 0")
	}
	lease := cmp.Or(s.LeaseDuration.D(), 4*s.LeaseRenew.D())
	if lease < s.LeaseRenew.D() {
		fail("leaseDuration %s is shorter than leaseRenew %s", s.LeaseDuration, s.LeaseRenew)
	}
	p.restartMost = cmp.Or(s.MaxContainerRestartPeriod.D(), scenario.MaxRestartPeriod)
	p.leaseSeconds = int32(max(1, (lease+time.Second-1)/time.Second))
	if s.KubeProxy && s.Fidelity == Shared {
		fail("kubeProxy needs fidelity %s or %s", Kubelet, Lean)
	}
	pods := p.deal(fail)
	if msgs := validation.IsDNS1123Subdomain(c.NamePrefix + "0"); len(msgs) > 0 {
		fail("name prefix %q: %s", c.NamePrefix, strings.Join(msgs, "; "))
	}
	for _, e := range metavalidation.ValidateLabels(c.Labels, field.NewPath("labels")) {
		fail("%v", e)
	}
	// A node has at least twice as many addresses as pods, because a pod's replacement may arrive before the node sees
	// the pod's end.
	p.podBits = bits.Len(uint(2*max(pods, 1) - 1))
	if room := 1 << max(0, podNetworkBits-p.podBits); s.Count > room {
		fail("count is %d; 10.128.0.0/10 has addresses for %d nodes of %d pods (lower nodes.pods)", s.Count, room, pods)
	}
	return p, errors.Join(errs...)
}

// everyRequest reports whether nodes also send those requests of a kubelet that change nothing (fidelity "kubelet").
func (p *plan) everyRequest() bool { return p.Spec.Fidelity == Kubelet }

// restricted reports whether RBAC, not the Node authorizer, decides what nodes may do.
func (p *plan) restricted() bool { return p.Restricted || !p.own() }

// own reports whether each node has its own connection and watches (every fidelity except "shared").
func (p *plan) own() bool { return p.Spec.Fidelity != Shared }

func (p *plan) nodeName(i int) string { return fmt.Sprintf("%s%d", p.NamePrefix, i) }

// pool is a group of nodes with the same settings.
type pool struct {
	scenario.NodePool
	room   corev1.ResourceList // capacity of each node in the pool
	taints []corev1.Taint      // taints of each node, from the run and from the pool
}

func (p *plan) poolOf(i int) *pool { return &p.pools[p.places[i].pool] }

// place is a node's position in its pool.
type place struct{ pool, number int }

// deal parses the pools and assigns the nodes to them, in a random order that depends on the seed. It returns the
// largest pod capacity of a node, and calls fail for each error.
func (p *plan) deal(fail func(format string, args ...any)) (pods int) {
	for i, of := range p.Spec.AllPools() {
		one := pool{NodePool: of, taints: slices.Clone(p.Taints), room: corev1.ResourceList{
			corev1.ResourcePods:             *resource.NewQuantity(int64(of.Pods), resource.DecimalSI),
			corev1.ResourceEphemeralStorage: *resource.NewQuantity(ephemeralStorage, resource.BinarySI),
		}}
		has := maps.Clone(of.Resources)
		if has == nil {
			has = map[string]string{}
		}
		has["cpu"], has["memory"] = of.CPU, of.Memory
		for name, text := range has {
			q, err := resource.ParseQuantity(text)
			if err != nil {
				fail("%s %q: %v", name, text, err)
			}
			one.room[corev1.ResourceName(name)] = q
		}
		for _, t := range of.Taints {
			one.taints = append(one.taints, corev1.Taint{Key: t.Key, Value: t.Value, Effect: corev1.TaintEffect(t.Effect)})
		}
		if of.Weight < 0 || of.Pods < 1 {
			fail("pool %q has weight %v and %d pods (each must be over 0)", of.Name, of.Weight, of.Pods)
		}
		if len(p.Spec.Pools) > i && (of.Name == "" || len(validation.IsValidLabelValue(of.Name)) > 0) {
			fail("pool %q: name must be a valid label value and not empty", of.Name)
		}
		p.pools = append(p.pools, one)
		for number := range of.Count {
			p.places = append(p.places, place{i, number})
		}
		pods = max(pods, of.Pods)
	}
	rng := rand.New(rand.NewPCG(uint64(p.Seed), 0x5a9e))
	rng.Shuffle(len(p.places), func(i, j int) { p.places[i], p.places[j] = p.places[j], p.places[i] })
	return pods
}

// draw returns a pseudo-random number between 0 and 1 that depends only on the seed and on the strings in `what`. For
// example, a pod has the same start time in every run with the same seed.
func draw(seed int64, what ...string) float64 {
	h := fnv.New64a()
	for _, s := range what {
		_, _ = h.Write([]byte(s)) // cannot fail
		_, _ = h.Write([]byte{0})
	}
	// FNV hashes of similar names are similar. The outputs of random generators with these hashes as seeds are not.
	x := rand.NewPCG(uint64(seed), h.Sum64()).Uint64()
	return (float64(x>>11) + 0.5) / (1 << 53)
}
