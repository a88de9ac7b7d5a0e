// Package adminclient makes every call that a plane makes to its own components,
// as their administrator. It takes an answer only from a server whose certificate
// is of the plane's own authority: another process on the same port, such as an old
// one that still drains, cannot answer.
package adminclient

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/stormglass/stormglass/controlplane/control"
	"github.com/stormglass/stormglass/controlplane/internal/pki"
	"github.com/stormglass/stormglass/controlplane/internal/topology"
)

// Client calls the components of one plane. Close it.
type Client struct {
	kube *kubernetes.Clientset
	// etcd and components verify etcd and the Kubernetes components.
	etcd, components *http.Client
}

// New returns a client with the keys of a plane, whose API server or load balancer
// is at the URL server.
func New(keys pki.Dir, server string) (*Client, error) {
	etcd, err := httpsClient(keys.Cert(pki.EtcdCA), keys.Pair(pki.EtcdClient))
	if err != nil {
		return nil, err
	}
	components, err := httpsClient(keys.Cert(pki.ServerCA), keys.Pair(pki.Admin))
	if err != nil {
		return nil, err
	}
	kube, err := kubernetes.NewForConfigAndClient(&rest.Config{Host: server, QPS: -1}, components)
	if err != nil {
		return nil, err
	}
	return &Client{kube: kube, etcd: etcd, components: components}, nil
}

// Close closes the client's connections.
func (c *Client) Close() {
	c.etcd.CloseIdleConnections()
	c.components.CloseIdleConnections()
}

// HTTP verifies the Kubernetes components.
func (c *Client) HTTP() *http.Client { return c.components }

func httpsClient(caFile string, id control.KeyPair) (*http.Client, error) {
	pem, err := os.ReadFile(caFile)
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("%s: no certificate", caFile)
	}
	cert, err := tls.LoadX509KeyPair(id.CertFile, id.KeyFile)
	if err != nil {
		return nil, err
	}
	return &http.Client{Transport: &http.Transport{
		TLSClientConfig:   &tls.Config{RootCAs: roots, Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS12},
		ForceAttemptHTTP2: true,
	}}, nil
}

// do sends a request to a component's process.
func (c *Client) do(ctx context.Context, proc topology.Process, method, path string, body io.Reader) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, proc.Address+path, body)
	if err != nil {
		return nil, err
	}
	if proc.Kind == control.KindEtcd {
		return c.etcd.Do(req)
	}
	return c.components.Do(req)
}

// Get expects status 200 from a path of a component's process.
func (c *Client) Get(ctx context.Context, proc topology.Process, path string) error {
	resp, err := c.do(ctx, proc, http.MethodGet, path, nil)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	body, _ := io.ReadAll(io.LimitReader(resp.Body, 4<<10))
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("GET %s: %s: %s", proc.Address+path, resp.Status, body)
	}
	return nil
}

// HoldsLease reports whether a leader-elected component holds its kind's lease. It
// asks the component: the holder's name in the lease is the host's and a random part.
func (c *Client) HoldsLease(ctx context.Context, proc topology.Process) (bool, error) {
	resp, err := c.do(ctx, proc, http.MethodGet, "/metrics", nil)
	if err != nil {
		return false, fmt.Errorf("%s: %w", proc.Name, err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return false, fmt.Errorf("%s: GET /metrics: %s", proc.Name, resp.Status)
	}
	return masterStatus(resp.Body, proc.Kind)
}

// masterStatus reads leader_election_master_status of a lease; false while a
// component has not taken part in an election.
func masterStatus(metrics io.Reader, lease string) (leads bool, err error) {
	series := fmt.Sprintf("leader_election_master_status{name=%q} ", lease)
	lines := bufio.NewScanner(metrics)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		if value, found := strings.CutPrefix(lines.Text(), series); found {
			return value == "1", nil
		}
	}
	return false, lines.Err()
}
