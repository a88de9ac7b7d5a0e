// Package podstream opens streams to pods (logs, exec, attach and port-forward) through the API server and the
// kubelets. For exec and port-forward it sends data that the command or the port must echo.
package podstream

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/client-go/tools/remotecommand"
	"k8s.io/streaming/pkg/httpstream"

	"github.com/stormglass/stormglass/loadgen/internal/load"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

// Caller is a load.Opener that opens one stream per call, to a random running pod.
type Caller struct {
	load   scenario.Load
	config *rest.Config
	client rest.Interface

	listed chan struct{} // closed when pods contains all running pods

	mu   sync.Mutex
	rng  *rand.Rand
	pods []types.NamespacedName
}

// New returns the Caller of a load. The defaults of l must be set.
func New(t load.Target, l scenario.Load) *Caller {
	return &Caller{load: l, listed: make(chan struct{}), rng: rand.New(rand.NewPCG(uint64(t.Seed), 0x10905+uint64(t.Share.Index)))}
}

// Prepare creates the client.
func (c *Caller) Prepare(_ context.Context, config *rest.Config, _ string, _ map[string]string) error {
	c.config = rest.CopyConfig(config)
	c.config.QPS, c.config.GroupVersion, c.config.APIPath = -1, &corev1.SchemeGroupVersion, "/api"
	c.config.NegotiatedSerializer = scheme.Codecs.WithoutConversion()
	client, err := kubernetes.NewForConfig(c.config)
	if err != nil {
		return err
	}
	c.client = client.CoreV1().RESTClient()
	return nil
}

// Watch keeps track of the running pods of a namespace until ctx ends. Do and Open wait until the first list of pods is
// complete.
func (c *Caller) Watch(ctx context.Context, namespace string) {
	_, informer := cache.NewInformerWithOptions(cache.InformerOptions{
		ListerWatcher: cache.NewListWatchFromClient(c.client, "pods", namespace, fields.Everything()), ObjectType: &corev1.Pod{},
		Handler: cache.FilteringResourceEventHandler{
			FilterFunc: func(o any) bool {
				p, ok := o.(*corev1.Pod) // or a tombstone
				return !ok || p.Status.Phase == corev1.PodRunning
			},
			Handler: cache.ResourceEventHandlerFuncs{
				AddFunc: func(o any) { c.change(o, func(p types.NamespacedName) { c.pods = append(c.pods, p) }) },
				DeleteFunc: func(o any) {
					c.change(o, func(p types.NamespacedName) {
						c.pods = slices.DeleteFunc(c.pods, func(q types.NamespacedName) bool { return q == p })
					})
				},
			},
		},
		Transform: func(o any) (any, error) {
			if p, ok := o.(*corev1.Pod); ok { // drop the fields that are not used
				p.Spec, p.Status, p.ManagedFields = corev1.PodSpec{}, corev1.PodStatus{Phase: p.Status.Phase}, nil
			}
			return o, nil
		},
	})
	go func() {
		if cache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
			close(c.listed)
		}
	}()
	informer.RunWithContext(ctx)
}

func (c *Caller) change(o any, do func(types.NamespacedName)) {
	name, err := cache.DeletionHandlingObjectToName(o)
	if err != nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	do(name.AsNamespacedName())
}

// draw returns a random running pod. It waits for the first list of pods.
func (c *Caller) draw(ctx context.Context) (types.NamespacedName, error) {
	select {
	case <-c.listed:
	case <-ctx.Done():
		return types.NamespacedName{}, context.Cause(ctx)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.pods) == 0 {
		return types.NamespacedName{}, apierrors.NewNotFound(corev1.Resource("pods"), "that runs")
	}
	return c.pods[c.rng.IntN(len(c.pods))], nil
}

// Do opens a stream and reads it to its end.
func (c *Caller) Do(ctx context.Context) error { return c.Open(ctx, func() {}) }

// Open opens a stream and reads it to its end. For logs and attach, it calls begun at the first byte and, if the load
// sets Follow, ends the stream that long afterwards.
func (c *Caller) Open(ctx context.Context, begun func()) error {
	pod, err := c.draw(ctx)
	if err != nil {
		return err
	}
	switch c.load.Stream {
	case "exec":
		return c.exec(ctx, pod)
	case "attach":
		return c.follow(ctx, begun, func(ctx context.Context, to io.Writer) error { return c.attach(ctx, pod, to) })
	case "portForward":
		return c.forward(ctx, pod)
	}
	return c.follow(ctx, begun, func(ctx context.Context, to io.Writer) error { return c.logs(ctx, pod, to) })
}

// follow calls `read`, which must read a stream to its end. If the load sets Follow, follow ends the stream that long
// after the first byte, and returns an error if the stream ends earlier.
func (c *Caller) follow(ctx context.Context, begun func(), read func(context.Context, io.Writer) error) error {
	if c.load.Follow == 0 {
		return read(ctx, &firstWrite{do: begun})
	}
	reading, cancel := context.WithCancel(ctx)
	defer cancel()
	first := &firstWrite{do: func() {
		begun()
		time.AfterFunc(c.load.Follow.D(), cancel)
	}}
	err := read(reading, first)
	switch {
	case reading.Err() == nil && err == nil:
		return fmt.Errorf("the stream ended early: %w", io.ErrUnexpectedEOF)
	case reading.Err() == nil:
		return err
	case !first.done:
		return load.ErrTimeout
	}
	return nil
}

// firstWrite is an io.Writer that discards all data. When it receives the first byte, it calls `do`.
type firstWrite struct {
	do   func()
	done bool
}

func (w *firstWrite) Write(p []byte) (int, error) {
	if !w.done && len(p) > 0 {
		w.done = true
		w.do()
	}
	return len(p), nil
}

func (c *Caller) request(pod types.NamespacedName, subresource string) *rest.Request {
	return c.client.Get().Namespace(pod.Namespace).Resource("pods").Name(pod.Name).SubResource(subresource)
}

// tail is the number of existing log lines that a stream of logs requests.
const tail = 10

func (c *Caller) logs(ctx context.Context, pod types.NamespacedName, to io.Writer) error {
	options := &corev1.PodLogOptions{Follow: c.load.Follow > 0, TailLines: new(int64(tail))}
	body, err := c.request(pod, "log").VersionedParams(options, scheme.ParameterCodec).Stream(ctx)
	if err != nil {
		return err
	}
	defer body.Close()
	_, err = io.Copy(to, body)
	return err
}

func (c *Caller) attach(ctx context.Context, pod types.NamespacedName, to io.Writer) error {
	request := c.request(pod, "attach").VersionedParams(&corev1.PodAttachOptions{Stdout: true}, scheme.ParameterCodec)
	return c.stream(ctx, request.URL(), remotecommand.StreamOptions{Stdout: to})
}

// payload is the data that a Caller sends to commands and ports; they must echo it.
var payload = bytes.Repeat([]byte("stormglass"), 100)

func echoed(got []byte) error {
	if !bytes.HasSuffix(got, payload) {
		return load.ErrMalformed
	}
	return nil
}

func (c *Caller) exec(ctx context.Context, pod types.NamespacedName) error {
	options := &corev1.PodExecOptions{Command: []string{"cat"}, Stdin: true, Stdout: true}
	var out bytes.Buffer
	url := c.request(pod, "exec").VersionedParams(options, scheme.ParameterCodec).URL()
	if err := c.stream(ctx, url, remotecommand.StreamOptions{Stdin: bytes.NewReader(payload), Stdout: &out}); err != nil {
		return err
	}
	return echoed(out.Bytes())
}

func (c *Caller) stream(ctx context.Context, to *url.URL, options remotecommand.StreamOptions) error {
	executor, err := remotecommand.NewWebSocketExecutor(c.config, http.MethodGet, to.String())
	if err != nil {
		return err
	}
	return executor.StreamWithContext(ctx, options)
}

// port is the forwarded port. Simulated nodes answer on every port.
const port = 80

func (c *Caller) forward(ctx context.Context, pod types.NamespacedName) error {
	dialer, err := portforward.NewSPDYOverWebsocketDialerForStreaming(c.request(pod, "portforward").URL(), c.config)
	if err != nil {
		return err
	}
	connection, _, err := dialer.Dial(portforward.PortForwardProtocolV1Name)
	if err != nil {
		return err
	}
	defer connection.Close()
	defer context.AfterFunc(ctx, func() { connection.Close() })()
	headers := http.Header{corev1.PortHeader: {strconv.Itoa(port)}, corev1.PortForwardRequestIDHeader: {"0"}}
	failure, err := open(connection, headers, corev1.StreamTypeError)
	if err != nil {
		return err
	}
	failure.Close() // the client sends nothing on the error stream
	data, err := open(connection, headers, corev1.StreamTypeData)
	if err != nil {
		return err
	}
	if _, err := data.Write(payload); err != nil {
		return err
	}
	got := make([]byte, len(payload))
	if _, err := io.ReadFull(data, got); err != nil {
		return err
	}
	return echoed(got)
}

func open(c httpstream.Connection, headers http.Header, kind string) (httpstream.Stream, error) {
	headers = headers.Clone()
	headers.Set(corev1.StreamType, kind)
	return c.CreateStream(headers)
}
