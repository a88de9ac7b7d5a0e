package job

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/client-go/transport/spdy"
	"k8s.io/streaming/pkg/httpstream"
)

// forward opens a connection to the worker's port in a pod through the API server, as `kubectl port-forward` does.
func forward(ctx context.Context, config *rest.Config, client kubernetes.Interface, namespace, pod string) (net.Conn, error) {
	url := client.CoreV1().RESTClient().Post().Resource("pods").Namespace(namespace).Name(pod).SubResource("portforward").URL()
	transport, upgrader, err := spdy.RoundTripperFor(config)
	if err != nil {
		return nil, err
	}
	websocket, err := portforward.NewSPDYOverWebsocketDialerForStreaming(url, config)
	if err != nil {
		return nil, err
	}
	dialer := portforward.NewFallbackDialerForStreaming(websocket, spdy.NewDialerForStreaming(upgrader, &http.Client{Transport: transport}, http.MethodPost, url), func(err error) bool {
		return httpstream.IsUpgradeFailure(err) || httpstream.IsHTTPSProxyError(err)
	})
	connection, _, err := dialer.Dial(portforward.PortForwardProtocolV1Name)
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { _ = connection.Close() }) // makes carry fail
	defer stop()
	c, err := carry(connection)
	if err != nil {
		return nil, errors.Join(err, connection.Close())
	}
	return c, nil
}

// carry opens the error stream and the data stream of a forwarded port. It returns the data stream as a net.Conn, which
// supports deadlines.
func carry(connection httpstream.Connection) (net.Conn, error) {
	headers := http.Header{}
	headers.Set(corev1.PortHeader, strconv.Itoa(port))
	headers.Set(corev1.PortForwardRequestIDHeader, "0")
	headers.Set(corev1.StreamType, corev1.StreamTypeError)
	failures, err := connection.CreateStream(headers)
	if err != nil {
		return nil, err
	}
	_ = failures.Close() // nothing is written to it
	headers.Set(corev1.StreamType, corev1.StreamTypeData)
	data, err := connection.CreateStream(headers)
	if err != nil {
		return nil, err
	}
	ours, theirs := net.Pipe()
	c := &carried{Conn: ours}
	end := func() { _ = theirs.Close(); _ = connection.Close() } // when one end closes, close both
	go func() { _, _ = io.Copy(theirs, data); end() }()
	go func() { _, _ = io.Copy(data, theirs); end() }()
	go func() {
		if text, err := io.ReadAll(failures); err == nil && len(text) > 0 {
			c.fail(fmt.Errorf("the kubelet: %s", text))
			end()
		}
	}()
	return c, nil
}

// carried is the connection to a forwarded port. If the forwarding fails, Read returns the reason.
type carried struct {
	net.Conn
	mu  sync.Mutex
	why error
}

func (c *carried) fail(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.why = err
}

// Read reads data. At the end of the data it returns the kubelet's error if there is one, otherwise io.EOF.
func (c *carried) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.mu.Lock()
	defer c.mu.Unlock()
	if err != nil && c.why != nil {
		err = c.why
	}
	return n, err
}
