package kubeletapi

import (
	"context"
	"io"
	"net/http"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/cri-streaming/pkg/streaming/portforward"
	"k8s.io/cri-streaming/pkg/streaming/remotecommand"
)

// The default values of a kubelet's streams (pkg/kubelet/kubelet.go, k8s.io/cri-streaming).
const (
	streamIdle     = 4 * time.Hour
	streamCreation = 30 * time.Second
)

func serveExec(w http.ResponseWriter, r *http.Request, n Node) {
	if pod, container, options, ok := open(w, r, n, remotecommand.NewOptions); ok {
		remotecommand.ServeExec(w, r, echo{}, pod.Name, string(pod.UID), container, r.URL.Query()["command"], options,
			streamIdle, streamCreation, remotecommand.SupportedStreamingProtocols)
	}
}

func serveAttach(w http.ResponseWriter, r *http.Request, n Node) {
	if pod, container, options, ok := open(w, r, n, remotecommand.NewOptions); ok {
		remotecommand.ServeAttach(w, r, output{n, pod}, pod.Name, string(pod.UID), container, options,
			streamIdle, streamCreation, remotecommand.SupportedStreamingProtocols)
	}
}

func servePortForward(w http.ResponseWriter, r *http.Request, n Node) {
	if pod, _, options, ok := open(w, r, n, portforward.NewV4Options); ok {
		var forwarder portforward.PortForwarder = echo{}
		if d, ok := n.(Dialer); ok {
			forwarder = dialed{d, pod}
		}
		portforward.ServePortForward(w, r, forwarder, pod.Name, string(pod.UID), options,
			streamIdle, streamCreation, portforward.SupportedProtocols)
	}
}

// open returns the pod, the container and the options of a stream request. On an error, it sends an error response and
// returns false.
func open[O any](w http.ResponseWriter, r *http.Request, n Node, parse func(*http.Request) (O, error)) (pod *corev1.Pod, container string, options O, ok bool) {
	if pod, container, ok = find(w, r, n); !ok {
		return pod, container, options, false
	}
	options, err := parse(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
	}
	return pod, container, options, err == nil
}

// echo is a runtime that executes no commands. It sends a command and its input, or the data that arrives at a
// forwarded port, back to the client.
type echo struct{}

func (echo) ExecInContainer(_ context.Context, _, _, _ string, cmd []string, in io.Reader, out, _ io.WriteCloser, tty bool, _ <-chan remotecommand.TerminalSize, _ time.Duration) error {
	if out == nil {
		out = nowhere{}
	}
	end := "\n"
	if tty {
		end = "\r\n"
	}
	if _, err := io.WriteString(out, strings.Join(cmd, " ")+end); err != nil || in == nil {
		return err
	}
	_, err := io.Copy(out, in)
	return err
}

func (echo) PortForward(_ context.Context, _, _ string, _ int32, stream io.ReadWriteCloser) error {
	_, err := io.Copy(stream, stream)
	return err
}

// dialed forwards port-forward connections to the processes of a pod.
type dialed struct {
	node Dialer
	pod  *corev1.Pod
}

func (d dialed) PortForward(ctx context.Context, _, _ string, port int32, stream io.ReadWriteCloser) error {
	conn, err := d.node.Dial(ctx, d.pod, port)
	if err != nil {
		return err
	}
	defer conn.Close()
	go func() {
		_, _ = io.Copy(conn, stream) // if the process closes the connection first, the other copy ends too
		if c, ok := conn.(interface{ CloseWrite() error }); ok {
			_ = c.CloseWrite() // the process may still send data
		}
	}()
	_, err = io.Copy(stream, conn)
	return err
}

type nowhere struct{}

func (nowhere) Write(p []byte) (int, error) { return len(p), nil }
func (nowhere) Close() error                { return nil }

// output attaches clients to the output of a container. A client receives only output that is written after its
// request.
type output struct {
	node Node
	pod  *corev1.Pod
}

func (o output) AttachContainer(ctx context.Context, _, _, container string, in io.Reader, out, _ io.WriteCloser, _ bool, _ <-chan remotecommand.TerminalSize) error {
	if out == nil {
		out = nowhere{}
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if in != nil { // the end of the input ends the session
		go func() {
			defer cancel()
			_, _ = io.Copy(out, in)
		}()
	}
	to := &lost{Writer: out}
	err := o.node.Log(ctx, o.pod, container, &corev1.PodLogOptions{Follow: true, TailLines: new(int64)}, to)
	if ctx.Err() != nil || to.lost {
		return nil
	}
	return err
}

// lost records whether a write has failed because the client has disconnected.
type lost struct {
	io.Writer
	lost bool
}

func (l *lost) Write(p []byte) (int, error) {
	n, err := l.Writer.Write(p)
	l.lost = l.lost || err != nil
	return n, err
}
