package mirror

import (
	"cmp"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	stats "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"github.com/stormglass/stormglass/controlplane/control"
	"github.com/stormglass/stormglass/controlplane/internal/pki"
	"github.com/stormglass/stormglass/controlplane/internal/process"
	"github.com/stormglass/stormglass/controlplane/internal/supervisor"
	"github.com/stormglass/stormglass/controlplane/internal/topology"
	"github.com/stormglass/stormglass/internal/kubeletapi"
)

// serve starts the kubelet API of all nodes. Each node has its own port on topology.Host, the address of all
// components. The server's certificate has the same certificate authority as the certificates of other kubelets.
func (nodes *Nodes) serve(cfg Config, all []*node) (*kubeletapi.Server, error) {
	leaf := pki.Leaf{
		CommonName: all[0].user(), Organizations: []string{"system:nodes"}, Server: true, IPs: []net.IP{net.ParseIP(topology.Host)},
	}
	certPEM, keyPEM, err := cfg.Keys.Issue(pki.ClientCA, leaf, time.Now())
	if err != nil {
		return nil, err
	}
	cert, err := tls.X509KeyPair(certPEM, keyPEM)
	if err != nil {
		return nil, err
	}
	authority, err := os.ReadFile(cfg.Keys.Cert(pki.ClientCA))
	if err != nil {
		return nil, err
	}
	ports := map[uint16]kubeletapi.Node{}
	server, err := kubeletapi.New(kubeletapi.Config{
		Node: func(at netip.AddrPort) kubeletapi.Node { return ports[at.Port()] }, Client: all[0].config, ClientCA: authority,
		Certificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return &cert, nil },
	})
	if err != nil {
		return nil, err
	}
	var listeners []net.Listener
	for _, n := range all {
		l, err := net.Listen("tcp", net.JoinHostPort(topology.Host, "0"))
		if err != nil {
			for _, l := range listeners {
				l.Close()
			}
			return nil, err
		}
		n.port = l.Addr().(*net.TCPAddr).AddrPort().Port()
		ports[n.port], listeners = n, append(listeners, l)
	}
	for _, l := range listeners {
		nodes.running.Go(func() { _ = server.Serve(l) }) // until Stop
	}
	return server, nil
}

var (
	_ kubeletapi.Node   = (*node)(nil)
	_ kubeletapi.Dialer = (*node)(nil)
)

// Name returns the name of the Node.
func (n *node) Name() string { return n.name }

// Unreachable returns nil, because the node is reachable as long as the supervisor runs.
func (*node) Unreachable() <-chan struct{} { return nil }

// Pods returns the static pods of the node.
func (n *node) Pods() (all []*corev1.Pod) {
	for _, c := range n.cfg.components(n.index) {
		pod := n.staticPod(c)
		pod.UID = types.UID(pod.Annotations[configHash])
		pod.Status = podStatus(c, n.image(c.Kind, c.Release), corev1.PodStatus{}, time.Now())
		all = append(all, pod)
	}
	return all
}

// Log copies the log of a pod's component to w.
func (n *node) Log(ctx context.Context, pod *corev1.Pod, container string, o *corev1.PodLogOptions, w io.Writer) error {
	for _, c := range n.cfg.components(n.index) {
		switch {
		case c.Kind != container:
		case !o.Previous:
			return copyLog(ctx, c.Log, c.Child, nil, o, w)
		case c.Last != nil:
			return copyLog(ctx, c.Log, c.Last, c.Child, o, w)
		}
	}
	return fmt.Errorf("previous terminated container %q in pod %q not found", container, pod.Name)
}

// wellKnown maps kinds of component to the secure ports in the manifests of kubeadm and metrics-server. A plane's
// components listen at other ports, so that several planes can run on one machine.
var wellKnown = map[string]int32{
	control.KindEtcd: 2379, control.KindAPIServer: 6443, control.KindScheduler: 10259, control.KindControllerManager: 10257,
	control.KindCloudControllerManager: 10258, control.KindMetricsServer: 10250,
}

func port(c supervisor.Snapshot) int32 {
	_, digits, _ := strings.Cut(strings.TrimPrefix(c.Address, "https://"), ":")
	n, _ := strconv.ParseInt(digits, 10, 32) // zero without an address
	return int32(n)
}

// Dial connects to the component that a pod represents. `to` is either the port at which the component listens, or the
// component's well-known port (see wellKnown).
func (n *node) Dial(ctx context.Context, pod *corev1.Pod, to int32) (net.Conn, error) {
	for _, c := range n.cfg.components(n.index) {
		if n.podName(c) != pod.Name {
			continue
		}
		serves := port(c)
		if to != serves && to != wellKnown[c.Kind] {
			return nil, fmt.Errorf("%s does not listen on port %d (forward port %d)", c.Name, to, cmp.Or(wellKnown[c.Kind], serves))
		}
		dialer := net.Dialer{Timeout: within}
		return dialer.DialContext(ctx, "tcp", net.JoinHostPort(topology.Host, strconv.Itoa(int(serves))))
	}
	return nil, fmt.Errorf("pod %q does not exist", pod.Name)
}

// Summary returns the resource usage of the components' processes. The usage of the node is the sum over its processes.
func (n *node) Summary(now time.Time) *stats.Summary {
	at := metav1.NewTime(now)
	var cpu, memory uint64
	all := &stats.Summary{}
	for _, c := range n.cfg.components(n.index) {
		if c.Child.Ended() {
			continue
		}
		used := process.ReadUsage(c.Child.PID)
		cpu, memory = cpu+uint64(used.CPU), memory+uint64(used.RSS)
		container := stats.ContainerStats{
			Name: c.Kind, StartTime: *seconds(c.Child.Started), CPU: cpuStats(at, uint64(used.CPU)), Memory: memoryStats(at, uint64(used.RSS)),
		}
		pod := n.staticPod(c)
		all.Pods = append(all.Pods, stats.PodStats{
			PodRef:    stats.PodReference{Name: pod.Name, Namespace: pod.Namespace, UID: pod.Annotations[configHash]},
			StartTime: container.StartTime, Containers: []stats.ContainerStats{container}, CPU: container.CPU, Memory: container.Memory,
		})
	}
	all.Node = stats.NodeStats{NodeName: n.name, StartTime: *seconds(n.started), CPU: cpuStats(at, cpu), Memory: memoryStats(at, memory)}
	return all
}

func cpuStats(at metav1.Time, used uint64) *stats.CPUStats {
	return &stats.CPUStats{Time: at, UsageCoreNanoSeconds: &used}
}

func memoryStats(at metav1.Time, used uint64) *stats.MemoryStats {
	return &stats.MemoryStats{Time: at, UsageBytes: &used, WorkingSetBytes: &used, RSSBytes: &used}
}
