package node

import (
	"context"
	"crypto/tls"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"

	"github.com/stormglass/stormglass/internal/kubeletapi"
)

// API configures the kubelet API that the nodes of a fleet serve.
type API struct {
	// At is the IP address that all nodes share, and the port of the first node. Each further node uses the next port.
	// With the zero value, each node has its own loopback address and uses the kubelet's default port.
	At netip.AddrPort
	// Client is the client configuration for TokenReviews and SubjectAccessReviews, which authenticate and authorize
	// the callers of the kubelet API.
	Client *rest.Config
	// ClientCA is the certificate, in PEM, of the CA that signs the clients' certificates.
	ClientCA []byte
	// Sign returns a serving certificate. Its subject is the given node, and it is valid for all given addresses.
	Sign func(ctx context.Context, node string, addresses []netip.Addr) (*tls.Certificate, error)
}

// loopbackNetwork is the first address of 127.64.0.0/10, the network of the nodes' own loopback addresses.
const loopbackNetwork = 127<<24 | 64<<16

// addressesPerCertificate is the maximum number of nodes that share a serving certificate. The limit keeps TLS
// handshakes small.
const addressesPerCertificate = 250

// apiServer serves the kubelet API of a fleet's nodes.
type apiServer struct {
	*kubeletapi.Server
	serving sync.WaitGroup
}

// serveAPI sets the nodes' addresses and starts to serve the kubelet API at these addresses. If it returns an error, it
// has changed no node.
func (f *Fleet) serveAPI(ctx context.Context) error {
	a := f.plan.API
	listeners, err := f.listen(ctx)
	defer func() {
		for _, l := range listeners { // close them after a failure
			l.Close()
		}
	}()
	if err != nil {
		return err
	}
	certificates := make([]onceCertificate, (len(f.kubelets)-1)/addressesPerCertificate+1)
	server, err := kubeletapi.New(kubeletapi.Config{
		Node: f.nodeAt, Client: a.Client, ClientCA: a.ClientCA,
		Certificate: func(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
			to, err := netip.ParseAddrPort(hello.Conn.LocalAddr().String())
			if err != nil {
				return nil, err
			}
			chunk := f.indexAt(to) / addressesPerCertificate
			return certificates[chunk].get(func() (*tls.Certificate, error) { return f.certify(hello.Context(), chunk) })
		},
	})
	if err != nil {
		return err
	}
	for i, k := range f.kubelets {
		at := netip.MustParseAddrPort(listeners[min(i, len(listeners)-1)].Addr().String())
		k.hostIP, k.port = a.At.Addr(), int32(at.Port())
		if !a.At.IsValid() {
			k.hostIP = address(loopbackNetwork + uint32(i) + 1)
		}
	}
	f.api = &apiServer{Server: server}
	for _, l := range listeners {
		f.api.serving.Go(func() {
			if err := server.Serve(l); err != nil {
				f.plan.Log("serve the nodes' kubelet API: %v", err)
			}
		})
	}
	listeners = nil
	return nil
}

// listen opens the listeners of the kubelet API. If the nodes share the address API.At, each node has its own listener,
// on its own port. Otherwise each node has its own loopback address, and one listener serves all of them.
func (f *Fleet) listen(ctx context.Context) (all []net.Listener, err error) {
	at := f.plan.API.At
	if !at.IsValid() {
		l, err := kubeletapi.ListenLoopback(ctx)
		if err != nil {
			return nil, err
		}
		return []net.Listener{l}, nil
	}
	for i := range f.kubelets {
		l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", netip.AddrPortFrom(at.Addr(), at.Port()+uint16(i)).String())
		if err != nil {
			return all, err
		}
		all = append(all, l)
	}
	return all, nil
}

// certify makes the serving certificate that addressesPerCertificate nodes share. The first of these nodes has the
// index chunk*addressesPerCertificate.
func (f *Fleet) certify(ctx context.Context, chunk int) (*tls.Certificate, error) {
	first := chunk * addressesPerCertificate
	some := f.kubelets[first:min(first+addressesPerCertificate, len(f.kubelets))]
	var addresses []netip.Addr
	for _, k := range some {
		if !slices.Contains(addresses, k.hostIP) {
			addresses = append(addresses, k.hostIP)
		}
	}
	c, err := f.plan.API.Sign(ctx, some[0].name, addresses)
	if err != nil {
		f.plan.Log("sign a serving certificate for the nodes' kubelet API: %v", err)
	}
	return c, err
}

// onceCertificate caches a certificate. get makes the certificate; after an error, the next call tries again.
type onceCertificate struct {
	mu   sync.Mutex
	made *tls.Certificate
}

func (o *onceCertificate) get(make func() (*tls.Certificate, error)) (*tls.Certificate, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.made != nil {
		return o.made, nil
	}
	var err error
	o.made, err = make()
	return o.made, err
}

// reset ends the connections to the kubelet API of k, a node that has gone down. On a nil apiServer it does nothing.
func (s *apiServer) reset(k *kubelet) {
	if s != nil {
		s.Reset(k)
	}
}

// close stops serving and waits until all serving goroutines have ended. On a nil apiServer it does nothing.
func (s *apiServer) close() {
	if s != nil {
		_ = s.Close() // ignore errors of connections that have ended
		s.serving.Wait()
	}
}

// indexAt returns the index of the node with the given kubelet API address. If no node has this address, the index is
// out of range.
func (f *Fleet) indexAt(at netip.AddrPort) int {
	if shared := f.plan.API.At; shared.IsValid() {
		return int(at.Port()) - int(shared.Port())
	}
	b := at.Addr().Unmap().As4()
	return int(binary.BigEndian.Uint32(b[:])) - loopbackNetwork - 1
}

// nodeAt returns the node at an address, or nil if no node has this address or the node is down.
func (f *Fleet) nodeAt(at netip.AddrPort) kubeletapi.Node {
	i := f.indexAt(at)
	if i < 0 || i >= len(f.kubelets) {
		return nil
	}
	k := f.kubelets[i]
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.life == nil || k.life.over() {
		return nil
	}
	return k
}

// Name returns the name of the node.
func (k *kubelet) Name() string { return k.name }

// Unreachable returns nil while the node's kubelet API is reachable. During a fault that makes the API unreachable,
// Unreachable returns a channel that is closed when the fault ends.
func (k *kubelet) Unreachable() <-chan struct{} {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.isolated
}

// isolate makes the node's kubelet API unreachable if on is true, and reachable if on is false.
func (k *kubelet) isolate(on bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	switch {
	case on && k.isolated == nil:
		k.isolated = make(chan struct{})
	case !on && k.isolated != nil:
		close(k.isolated)
		k.isolated = nil
	}
}

// Pods returns the pods of the node, as the watch last delivered them.
func (k *kubelet) Pods() []*corev1.Pod {
	k.mu.Lock()
	var objects [][]byte
	for _, p := range k.pods {
		objects = append(objects, p.object)
	}
	k.mu.Unlock()
	var all []*corev1.Pod
	for _, o := range objects {
		if p := k.decodePod(o); p != nil {
			all = append(all, p)
		}
	}
	return all
}

// startOf returns when a container started and ended. start is zero if the container has not started; end is zero while
// it runs.
func startOf(pod *corev1.Pod, container string) (start, end time.Time) {
	for _, c := range slices.Concat(pod.Status.ContainerStatuses, pod.Status.InitContainerStatuses, pod.Status.EphemeralContainerStatuses) {
		switch {
		case c.Name != container:
		case c.State.Running != nil:
			return c.State.Running.StartedAt.Time, time.Time{}
		case c.State.Terminated != nil:
			return c.State.Terminated.StartedAt.Time, c.State.Terminated.FinishedAt.Time
		}
	}
	return start, end
}

// logInterval is the annotation with the time between two lines of a pod's logs. Without the annotation, the interval
// is one second.
const logInterval = "stormglass.dev/log-interval"

func intervalOf(pod *corev1.Pod) time.Duration {
	if d, err := time.ParseDuration(pod.Annotations[logInterval]); err == nil && d >= time.Millisecond {
		return d
	}
	return time.Second
}

// Log writes a simulated container log: a line when the container starts, and one line per interval after that. Lines
// are computed, not stored, so repeated reads return identical lines.
func (k *kubelet) Log(ctx context.Context, pod *corev1.Pod, container string, o *corev1.PodLogOptions, w io.Writer) error {
	start, end := startOf(pod, container)
	if o.Previous {
		return fmt.Errorf("previous terminated container %q in pod %q not found", container, pod.Name)
	}
	if start.IsZero() {
		return fmt.Errorf("container %q in pod %q is waiting to start: ContainerCreating", container, pod.Name)
	}
	every := intervalOf(pod)
	at := func(n int64) time.Time { return start.Add(time.Duration(n) * every) }
	now := k.plan.clock.Now()
	last := now
	if !end.IsZero() && end.Before(now) {
		last = end
	}
	lines := int64(last.Sub(start)/every) + 1
	first := int64(0)
	since := time.Time{}
	if o.SinceTime != nil {
		since = o.SinceTime.Time
	} else if o.SinceSeconds != nil {
		since = now.Add(-time.Duration(*o.SinceSeconds) * time.Second)
	}
	if since.After(start) {
		first = int64(math.Ceil(float64(since.Sub(start)) / float64(every)))
	}
	if o.TailLines != nil {
		first = max(first, lines-*o.TailLines)
	}
	for n := first; ; n++ {
		if n >= lines {
			if !o.Follow || !end.IsZero() {
				return nil
			}
			timer := k.plan.clock.NewTimer(at(n).Sub(k.plan.clock.Now()))
			select {
			case <-timer.C():
			case <-ctx.Done():
				timer.Stop()
				return nil
			}
			if !k.runs(pod, container) {
				return nil
			}
		}
		line := fmt.Sprintf("%s line %d of container %s of pod %s/%s, simulated by stormglass\n", at(n).UTC().Format(time.RFC3339), n, container, pod.Namespace, pod.Name)
		if o.Timestamps {
			line = at(n).UTC().Format("2006-01-02T15:04:05.000000000Z07:00") + " " + line
		}
		if _, err := w.Write([]byte(line)); err != nil {
			return err
		}
	}
}

// runs reports whether a pod's container runs on this node. An ephemeral container also runs while the pod's other
// containers wait for a restart.
func (k *kubelet) runs(pod *corev1.Pod, container string) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	p := k.pods[pod.UID]
	return p != nil && (p.state == running || p.state < stopping && p.isEphemeral(container))
}
