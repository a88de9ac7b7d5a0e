// Package kubeletapi serves the API of kubelets (port 10250) for many nodes with one Server. The local address of a
// connection selects the node. The API server authenticates and authorizes clients. The package executes no commands:
// exec echoes the command and the client's data. port-forward also echoes data, unless the node is a Dialer.
package kubeletapi

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	stats "k8s.io/kubelet/pkg/apis/stats/v1alpha1"
)

// Port is the port at which a kubelet serves its API by default.
const Port = 10250

// Node is the source of the data of one node.
type Node interface {
	Name() string
	// Unreachable returns nil while the node is reachable. Otherwise it returns a channel; all connections to the node
	// hang until that channel is closed.
	Unreachable() <-chan struct{}
	// Pods returns the pods of the node, with their statuses.
	Pods() []*corev1.Pod
	// Summary returns the current resource usage of the node and its pods.
	Summary(now time.Time) *stats.Summary
	// Log copies a container's log to w. It returns at the end of the log. With o.Follow it continues until ctx ends.
	Log(ctx context.Context, pod *corev1.Pod, container string, o *corev1.PodLogOptions, w io.Writer) error
}

// Dialer is a Node whose pods are real processes. port-forward connects to these processes.
type Dialer interface {
	// Dial connects to a port of a pod. It fails if the pod does not have the port.
	Dial(ctx context.Context, pod *corev1.Pod, port int32) (net.Conn, error)
}

// Config configures a Server.
type Config struct {
	// Node returns the node whose address is the local address of a connection. It returns nil if no node has the
	// address, or if the node is down.
	Node func(netip.AddrPort) Node
	// Client is the configuration of the client that sends TokenReviews and SubjectAccessReviews.
	Client *rest.Config
	// ClientCA is the certificate authority of client certificates, as PEM.
	ClientCA []byte
	// Certificate returns the server's certificate for a TLS handshake.
	Certificate func(*tls.ClientHelloInfo) (*tls.Certificate, error)
}

// Server serves the kubelet API of many nodes.
type Server struct {
	access      *access
	http        *http.Server
	connections *connections
}

// New returns a Server. The Server does not call the API server before it receives its first request.
func New(c Config) (*Server, error) {
	a, err := newAccess(c.Client, c.ClientCA)
	if err != nil {
		return nil, err
	}
	s := &Server{access: a, connections: &connections{node: c.Node, open: map[*connection]bool{}}}
	s.http = &http.Server{
		Handler: s.routes(),
		// Offer HTTP/2 too, as a kubelet does. Only HTTP/1.1 connections can be upgraded to streams.
		TLSConfig:         &tls.Config{GetCertificate: c.Certificate, ClientAuth: tls.RequestClientCert, MinVersion: tls.VersionTLS12},
		ReadHeaderTimeout: 30 * time.Second,
		ErrorLog:          log.New(io.Discard, "", 0), // discard errors of clients that gave up
		ConnContext: func(ctx context.Context, c net.Conn) context.Context {
			return context.WithValue(ctx, nodeKey{}, c.(*tls.Conn).NetConn().(*connection).node)
		},
	}
	return s, nil
}

// Serve accepts connections on a listener, and serves them, until Close is called.
func (s *Server) Serve(l net.Listener) error {
	err := s.http.ServeTLS(&listener{l, s.connections}, "", "")
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}

// Reset resets the connections of a node that has gone down.
func (s *Server) Reset(n Node) { s.connections.reset(func(of Node) bool { return of == n }) }

// Close resets all connections.
func (s *Server) Close() error {
	s.connections.reset(func(Node) bool { return true }) // first: http.Close would wait for connections to unreachable nodes
	err := s.http.Close()
	s.connections.reset(func(Node) bool { return true }) // reset connections that were accepted in between
	return err
}

type nodeKey struct{}

type handler func(w http.ResponseWriter, r *http.Request, n Node)

func (s *Server) routes() http.Handler {
	mux := http.NewServeMux()
	handle := func(pattern string, h handler) {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			n := r.Context().Value(nodeKey{}).(Node)
			if s.access.allowed(w, r, n.Name()) {
				h(w, r, n)
			}
		})
	}
	ok := func(w http.ResponseWriter, _ *http.Request, _ Node) { fmt.Fprint(w, "ok") }
	for _, path := range []string{"/healthz", "/healthz/ping", "/healthz/log", "/healthz/syncloop"} {
		handle("GET "+path, ok)
	}
	pods := func(w http.ResponseWriter, _ *http.Request, n Node) { writeJSON(w, podList(n)) }
	handle("GET /pods", pods)
	handle("GET /runningpods/", pods)
	handle("GET /stats/summary", func(w http.ResponseWriter, _ *http.Request, n Node) { writeJSON(w, n.Summary(time.Now())) })
	handle("GET /configz", func(w http.ResponseWriter, _ *http.Request, _ Node) {
		writeJSON(w, map[string]any{"kubeletconfig": map[string]any{"apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration"}})
	})
	handle("GET /metrics", serveMetrics)
	handle("GET /metrics/resource", serveResources)
	handle("GET /metrics/probes", func(http.ResponseWriter, *http.Request, Node) {})
	handle("GET /metrics/cadvisor", serveResources)
	handle("GET /containerLogs/{namespace}/{pod}/{container}", serveLog)
	for _, path := range []string{"/{namespace}/{pod}/{container}", "/{namespace}/{pod}/{uid}/{container}"} {
		handle("/exec"+path, serveExec)
		handle("/attach"+path, serveAttach)
	}
	for _, path := range []string{"/{namespace}/{pod}", "/{namespace}/{pod}/{uid}"} {
		handle("/portForward"+path, servePortForward)
	}
	handle("/", func(w http.ResponseWriter, r *http.Request, _ Node) { http.NotFound(w, r) })
	return mux
}

func podList(n Node) *corev1.PodList {
	list := &corev1.PodList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PodList"}}
	for _, p := range n.Pods() {
		list.Items = append(list.Items, *p)
	}
	return list
}

func writeJSON(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v) // an error means that the client has disconnected
}

// find returns the pod and container that a request names. If they do not exist, it responds with 404. A port-forward
// request names no container.
func find(w http.ResponseWriter, r *http.Request, n Node) (pod *corev1.Pod, container string, found bool) {
	name, container := r.PathValue("pod"), r.PathValue("container")
	for _, p := range n.Pods() {
		if p.Namespace != r.PathValue("namespace") || p.Name != name || r.PathValue("uid") != "" && string(p.UID) != r.PathValue("uid") {
			continue
		}
		if container == "" || has(p, container) {
			return p, container, true
		}
		http.Error(w, fmt.Sprintf("container %q not found in pod %q", container, name), http.StatusNotFound)
		return nil, "", false
	}
	http.Error(w, fmt.Sprintf("pod %q does not exist", name), http.StatusNotFound)
	return nil, "", false
}

func has(p *corev1.Pod, container string) bool {
	named := func(c corev1.Container) bool { return c.Name == container }
	return slices.ContainsFunc(p.Spec.Containers, named) || slices.ContainsFunc(p.Spec.InitContainers, named) ||
		slices.ContainsFunc(p.Spec.EphemeralContainers, func(c corev1.EphemeralContainer) bool { return c.Name == container })
}
