package workers

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/transport"

	"github.com/stormglass/stormglass/controlplane/control"
	"github.com/stormglass/stormglass/internal/exitcode"
	"github.com/stormglass/stormglass/internal/stubapi"
	"github.com/stormglass/stormglass/loadgen/internal/apiclient/h2conn/h2test"
	"github.com/stormglass/stormglass/loadgen/internal/node"
	"github.com/stormglass/stormglass/loadgen/internal/plan"
	"github.com/stormglass/stormglass/loadgen/result"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

const sevenNodes = `
nodes: {count: 7, fidelity: shared, leaseRenew: 1s, registerRate: 1000/s}
phases: [{name: p, for: 10s}]
`

// nodeBench returns workers that have joined and divide the nodes of a scenario. cloud may be nil.
func nodeBench(t *testing.T, of int, body string, cloud node.Cloud) (*bench, *Nodes) {
	t.Helper()
	b := newBench(t, of, body, nil)
	n, err := b.fleet.DivideNodes(b.nodeConfig(cloud))
	if err != nil {
		t.Fatal(err)
	}
	if err := b.join(); err != nil {
		t.Fatal(err)
	}
	return b, n
}

func (b *bench) nodeConfig(cloud node.Cloud) node.Config {
	return node.Config{
		Spec: b.plan.Nodes, Identities: node.NewShared(b.server.Config()), Labels: map[string]string{"run": "r"}, NamePrefix: "sg-", Seed: b.plan.Seed, Cloud: cloud,
	}
}

// instances is a simulated cloud that keeps the names of its instances.
type instances struct {
	mu    sync.Mutex
	names map[string]bool
}

func (c *instances) ChangeInstances(_ context.Context, change control.Instances) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, i := range change.Launch {
		c.names[i.Name] = true
	}
	for _, name := range change.Terminate {
		delete(c.names, name)
	}
	return nil
}

// Three workers register the same nodes as one process would, renew their Leases, and have the same faults. The merged
// results, metrics and costs describe one generator, and contain each worker's share.
func TestNodesAreDivided(t *testing.T) {
	cloud := &instances{names: map[string]bool{}}
	b, n := nodeBench(t, 3, sevenNodes, cloud)
	if err := n.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	var made, want []string
	for _, e := range b.server.Exchanges() {
		if e.Method == "PATCH" && strings.HasPrefix(e.Path, "/api/v1/nodes/") && e.Status == 200 {
			made = append(made, strings.TrimSuffix(strings.TrimPrefix(e.Path, "/api/v1/nodes/"), "/status"))
		}
	}
	for i := range 7 {
		want = append(want, fmt.Sprint("sg-", i))
	}
	slices.Sort(made)
	if !slices.Equal(made, want) || !slices.Equal(n.Names(), want) || len(cloud.names) != 7 {
		t.Errorf("registered %v, names %v, instances in the cloud %v", made, n.Names(), cloud.names)
	}
	h2test.Await(t, "all to be told as Ready", func() bool { l := n.Live(); return l.Ready == 7 && l.Count == 7 && l.Registered == 7 })
	h2test.Await(t, "renewals", func() bool { return b.received("PUT") >= 7 })

	registry := prometheus.NewPedanticRegistry()
	if err := b.fleet.Register(registry); err != nil {
		t.Fatal(err)
	}
	if err := testutil.GatherAndCompare(registry, strings.NewReader(`
# HELP stormglass_nodes_ready Simulated nodes that are Ready.
# TYPE stormglass_nodes_ready gauge
stormglass_nodes_ready 7
`), "stormglass_nodes_ready"); err != nil {
		t.Error(err)
	}

	whole, err := node.New(b.nodeConfig(nil))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range []node.Fault{
		{Kind: control.NodeFailure, Fraction: 0.3}, {Kind: control.SlowKubelet, Fraction: 0.5, Delay: time.Second}, {Kind: control.InstancesVanish, Fraction: 0.3},
	} {
		got, err := n.Begin(f)
		want, _ := whole.Begin(f)
		if err != nil || len(got) < 2 || !slices.Equal(got, want) {
			t.Errorf("fault %s affects %v (%v), but in one process %v", f.Kind, got, err, want)
		}
	}
	h2test.Await(t, "the faults to be told", func() bool { l := n.Live(); return l.Ready == 3 && l.Failed == 4 && l.Slow == 4 })
	if len(cloud.names) != 5 {
		t.Errorf("the cloud has %v after two nodes vanished, want 5 instances", cloud.names)
	}
	if _, err := n.Begin(node.Fault{Kind: control.NodeRecovery}); err != nil {
		t.Fatal(err)
	}
	h2test.Await(t, "all to be back", func() bool { l := n.Live(); return l.Ready == 7 && l.Failed == 0 && l.Slow == 0 })
	n.Stop(t.Context())
	b.fleet.End()
	m := result.Measurements{Phases: []result.Phase{{Name: "p"}}}
	if err := b.fleet.AddTo(&m); err != nil {
		t.Fatal(err)
	}
	if len(m.Workers) != 3 || m.Workers[0].Nodes != 3 || m.Workers[1].Nodes != 2 || m.Workers[2].Nodes != 2 {
		t.Errorf("workers %+v", m.Workers)
	}
	r := n.Results()
	if r.Count != 7 || r.Fidelity != node.Shared || r.ReadySeconds <= 0 || r.Heartbeats < 7 || r.Heartbeat.Count < r.Heartbeats {
		t.Errorf("results %+v", r)
	}
	for index, err := range b.threads.ended() {
		if err != nil {
			t.Errorf("worker %d ended with the error %v", index, err)
		}
	}
}

// A lost worker ends the run immediately, because its nodes are gone. The error names the worker, and no call waits for
// it.
func TestLostWorkerOfNodesEndsTheRun(t *testing.T) {
	b, n := nodeBench(t, 2, sevenNodes, nil)
	if err := n.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	b.threads.kills[1]()
	err := b.fleet.Watch(t.Context())
	if exitcode.Of(err) != exitcode.NoData || !strings.Contains(err.Error(), "worker 1 (") || !strings.Contains(err.Error(), "was lost") {
		t.Errorf("error after a worker was killed: %v", err)
	}
	if _, err := n.Begin(node.Fault{Kind: control.NodeFailure, Fraction: 1}); !errors.As(err, new(*LostError)) {
		t.Errorf("error for a fault of the lost worker's nodes: %v, want a LostError", err)
	}
	n.Stop(t.Context())
	if r := n.Results(); r.Count != 7 {
		t.Errorf("results %+v", r)
	}
}

// If nodes cannot register, Start returns an error of one line that names the worker, and the other workers stop
// registering nodes.
func TestRefusedNodesNameTheirWorker(t *testing.T) {
	b, n := nodeBench(t, 3, strings.Replace(sevenNodes, "1000/s", "1/s", 1), nil)
	b.server.SetPolicy(func(r stubapi.Request) stubapi.Answer {
		if r.Method == "POST" && r.Path == "/api/v1/nodes" {
			return stubapi.Answer{Status: 401}
		}
		return stubapi.Answer{}
	})
	err := n.Start(t.Context())
	if err == nil || !strings.Contains(err.Error(), "worker 0 (") || !strings.Contains(err.Error(), "register node sg-0") || strings.Contains(err.Error(), "\n") {
		t.Errorf("error for nodes without permissions: %v", err)
	}
	n.Stop(t.Context())
}

// An interrupt ends the start immediately, and the error reports the progress.
func TestStartOfNodesIsInterrupted(t *testing.T) {
	b, n := nodeBench(t, 2, strings.Replace(sevenNodes, "1000/s", "0.01/s", 1), nil)
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		h2test.Await(t, "the first node", func() bool { return n.Live().Registered == 1 })
		cancel()
	}()
	if err := n.Start(ctx); !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "1 of 7 nodes are Ready") {
		t.Errorf("interrupted: %v", err)
	}
	n.Stop(t.Context())
	if err := b.fleet.Failed(); err != nil {
		t.Errorf("the interrupted start failed the run: %v", err)
	}
}

// A worker without nodes runs its share of the loads.
func TestFewerNodesThanWorkers(t *testing.T) {
	b, n := nodeBench(t, 3, "nodes: {count: 2, fidelity: shared}\n"+reads, nil)
	if err := n.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	if names, err := n.Begin(node.Fault{Kind: control.NodeFailure, Fraction: 1}); err != nil || len(names) != 2 {
		t.Errorf("fault of all nodes affects %v (%v), want 2 nodes", names, err)
	}
	n.Stop(t.Context())
	m := result.Measurements{}
	if err := b.fleet.AddTo(&m); err != nil || m.Workers[1].Nodes != 1 || m.Workers[2].Nodes != 0 {
		t.Errorf("AddTo: workers %+v, error %v", m.Workers, err)
	}
}

// accounts provides identities with tokens that are renewed. For one node it returns an error.
type accounts struct {
	mu         sync.Mutex
	generation int
}

func (a *accounts) For(_ context.Context, name string) (*rest.Config, error) {
	if name == "sg-9" {
		return nil, errors.New("the account is forbidden")
	}
	return &rest.Config{}, nil
}

func (a *accounts) ForProxies(context.Context) (*rest.Config, error) { return &rest.Config{}, nil }

func (a *accounts) Token(name string) string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return fmt.Sprint(name, "/", a.generation)
}

// signed provides identities with certificates.
type signed struct{}

func (signed) For(_ context.Context, name string) (*rest.Config, error) {
	return &rest.Config{Host: "https://coordinators-view", TLSClientConfig: rest.TLSClientConfig{CertData: []byte("cert of " + name), KeyData: []byte("key of " + name)}}, nil
}

func (s signed) ForProxies(ctx context.Context) (*rest.Config, error) { return s.For(ctx, "proxies") }

// asking returns the identities of a worker, connected without a network to a coordinator with the identities ids.
func asking(t *testing.T, ids node.Identities) (*askedIdentities, *member) {
	m := newMember(&Fleet{members: make([]*member, 1), nodes: &node.Config{Identities: ids, NamePrefix: "sg-", Spec: scenario.Nodes{Count: 10, KubeProxy: true}}}, nil, hello{})
	asked := newAskedIdentities(func(sent message) error { m.give(*sent.Ask); return nil }, &rest.Config{
		Host: "https://workers-view", BearerToken: "of the load", TLSClientConfig: rest.TLSClientConfig{CAData: []byte("ca")},
	})
	go func() {
		for {
			select {
			case got := <-m.out:
				if got.Given != nil {
					asked.take(*got.Given)
				}
				asked.renew(got.NodeTokens)
			case <-t.Context().Done():
				return
			}
		}
	}()
	return asked, m
}

// headers is a RoundTripper that keeps the Authorization header of a request.
type headers struct{ authorization string }

func (h *headers) RoundTrip(r *http.Request) (*http.Response, error) {
	h.authorization = r.Header.Get("Authorization")
	return &http.Response{Body: http.NoBody}, nil
}

// tokenOfNode returns the Authorization header of requests with a client configuration.
func tokenOfNode(t *testing.T, c *rest.Config) string {
	t.Helper()
	var seen headers
	tc, err := c.TransportConfig()
	if err != nil {
		t.Fatal(err)
	}
	wrapped, err := transport.HTTPWrappersForConfig(tc, &seen)
	if err != nil {
		t.Fatal(err)
	}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, c.Host, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := wrapped.RoundTrip(request); err != nil {
		t.Fatal(err)
	}
	return seen.authorization
}

// Workers get the certificates and tokens of their nodes from the coordinator. With them, the nodes reach the API
// server at the worker's address.
func TestCredentialsOfNodesComeFromTheCoordinator(t *testing.T) {
	asked, _ := asking(t, signed{})
	c, err := asked.For(t.Context(), "sg-1")
	if err != nil || c.Host != "https://workers-view" || string(c.CAData) != "ca" || string(c.CertData) != "cert of sg-1" || string(c.KeyData) != "key of sg-1" || c.BearerToken != "" {
		t.Errorf("certificate of a node: %+v, %v", c, err)
	}
	if c, err = asked.ForProxies(t.Context()); err != nil || string(c.CertData) != "cert of proxies" {
		t.Errorf("certificate of the kube-proxies: %+v, %v", c, err)
	}

	renewed := &accounts{}
	asked, m := asking(t, renewed)
	if c, err = asked.For(t.Context(), "sg-2"); err != nil || tokenOfNode(t, c) != "Bearer sg-2/0" {
		t.Errorf("token of a node: %+v, %v", c, err)
	}
	if got := m.renewed(renewed); len(got) > 0 {
		t.Errorf("tokens renewed too early: %v", got)
	}
	renewed.mu.Lock()
	renewed.generation++
	renewed.mu.Unlock()
	m.post(message{NodeTokens: m.renewed(renewed)})
	h2test.Await(t, "the renewed token", func() bool { return tokenOfNode(t, c) == "Bearer sg-2/1" })
	if _, err = asked.For(t.Context(), "sg-9"); err == nil || err.Error() != "the account is forbidden" {
		t.Errorf("error for a forbidden account: %v", err)
	}
}

// issuer counts the certificates that it issues.
type issuer struct {
	signed
	issued atomic.Int32
}

func (i *issuer) For(ctx context.Context, name string) (*rest.Config, error) {
	i.issued.Add(1)
	return i.signed.For(ctx, name)
}

// A worker that requests credentials repeatedly gets at most maxAsks certificates per hour and node.
func TestCertificatesOfAWorkerAreLimited(t *testing.T) {
	ids := &issuer{}
	asked, m := asking(t, ids)
	var err error
	for range 3 * maxAsks {
		_, err = asked.For(t.Context(), "sg-1")
	}
	if err == nil || !strings.Contains(err.Error(), "too often") || ids.issued.Load() != maxAsks {
		t.Errorf("issued %d certificates: %v", ids.issued.Load(), err)
	}
	if _, err = asked.For(t.Context(), "sg-2"); err != nil {
		t.Errorf("error for another node: %v", err)
	}
	m.mu.Lock()
	m.since = m.since.Add(-time.Hour)
	m.mu.Unlock()
	if _, err = asked.For(t.Context(), "sg-1"); err != nil {
		t.Errorf("error after an hour: %v", err)
	}
}

// If the scenario needs the nodes' kubelet API, the coordinator runs the nodes, and WholeNodes returns the reason.
// Otherwise workers divide the nodes, even if the scenario has no loads.
func TestWhichNodesAreDivided(t *testing.T) {
	const phase = "\nphases: [{name: p, for: 5s}]"
	for name, c := range map[string]struct {
		body         string
		count        int
		whole, check string
	}{
		"nodes alone":    {"nodes: {count: 4}" + phase, 4, "", ""},
		"too few":        {"nodes: {count: 3}" + phase, 4, "", "3 nodes cannot be divided among 4 workers"},
		"none":           {strings.TrimSpace(phase), 2, "", "has no loads or nodes that can be divided among workers"},
		"an address":     {"nodes: {count: 4, kubeletAddress: '10.0.0.5:10250'}" + phase, 2, "nodes.kubeletAddress requires that one process", "nodes.kubeletAddress requires that one process"},
		"metrics-server": {"nodes: {count: 4}\ncontrolPlane: {metricsServer: {replicas: 1}}" + phase, 2, "metricsServer requires that one process", "metricsServer requires that one process"},
		"a fault of it":  {"nodes: {count: 4}\nphases: [{name: p, for: 5s, faults: [{kind: kubeletUnreachable, fraction: 0.5}]}]", 2, "fault kubeletUnreachable requires that one process", "requires that one process"},
		"with a load":    {"nodes: {count: 1, kubeletAddress: '10.0.0.5:10250'}\n" + reads, 2, "nodes.kubeletAddress requires that one process", ""},
	} {
		s := parse(t, c.body)
		if got := WholeNodes(plan.Of(s)); c.whole == "" && got != "" || !strings.Contains(got, c.whole) {
			t.Errorf("%s: WholeNodes = %q", name, got)
		}
		err := Check(Options{Count: c.count}, plan.Of(s))
		if c.check == "" && err != nil || c.check != "" && (exitcode.Of(err) != exitcode.Usage || !strings.Contains(err.Error(), c.check) || strings.Contains(err.Error(), "\n")) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
