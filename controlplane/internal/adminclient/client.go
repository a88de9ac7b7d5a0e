// Package adminclient makes every call that a plane makes to its own components,
// as their administrator. It takes an answer only from a server whose certificate
// is of the plane's own authority: another process on the same port, such as an old
// one that still drains, cannot answer.
package adminclient

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net/http"
	"os"

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

// Get expects status 200 from a path of a component's process.
func (c *Client) Get(ctx context.Context, proc topology.Process, path string) error {
	client, url := c.components, proc.Address+path
	if proc.Kind == control.KindEtcd {
		client = c.etcd
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	body, _ := io.ReadAll(io.LimitReader(resp.Body, 4<<10))
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("GET %s: %s: %s", url, resp.Status, body)
	}
	return nil
}
