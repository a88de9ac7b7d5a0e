package kubeletapi

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// served is a node with a process at one port. When the client has sent all its data, the process sends it back.
type served struct{ one }

func (served) Dial(_ context.Context, _ *corev1.Pod, port int32) (net.Conn, error) {
	if port != 10259 {
		return nil, errors.New("no such port")
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	go func() {
		defer l.Close() // a listener that closes resets connections that it has not accepted
		conn, err := l.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		sent, _ := io.ReadAll(conn)
		_, _ = conn.Write(append([]byte("read "), sent...))
	}()
	conn, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		l.Close()
		return nil, err
	}
	return conn, nil
}

type stream struct {
	io.Reader
	io.Writer
}

func (stream) Close() error { return nil }

func TestPortForwardDials(t *testing.T) {
	var got strings.Builder
	to := dialed{node: served{}}
	if err := to.PortForward(t.Context(), "web", "u", 10259, stream{strings.NewReader("a request"), &got}); err != nil || got.String() != "read a request" {
		t.Errorf("%q, %v", got.String(), err)
	}
	if err := to.PortForward(t.Context(), "web", "u", 80, stream{}); err == nil || err.Error() != "no such port" {
		t.Errorf("another port: %v", err)
	}
}
