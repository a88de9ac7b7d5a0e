// Package adminclient makes all calls of a plane to its own components, as their administrator. It accepts responses
// only from servers with a certificate of the plane's certificate authority, so it rejects responses of another process
// on the same port.
package adminclient

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/transport"

	"github.com/stormglass/stormglass/controlplane/control"
	"github.com/stormglass/stormglass/controlplane/internal/pki"
	"github.com/stormglass/stormglass/controlplane/internal/service"
	"github.com/stormglass/stormglass/controlplane/internal/topology"
)

// Client calls the components of one plane. The caller must close it.
type Client struct {
	kube *kubernetes.Clientset
	// etcd is the HTTP client for etcd, and components is the HTTP client for the Kubernetes components. Each client
	// verifies its servers.
	etcd, components *http.Client
}

// New returns a client that authenticates with the credentials of a plane. server is the URL of the plane's API server
// or load balancer.
func New(keys pki.Dir, server string) (*Client, error) {
	etcd, err := httpsClient(keys.Cert(pki.EtcdCA), keys.Pair(pki.EtcdClient))
	if err != nil {
		return nil, err
	}
	components, err := httpsClient(keys.Cert(pki.ServerCA), keys.Pair(pki.Admin))
	if err != nil {
		return nil, err
	}
	// The user agent distinguishes this client in audit logs from others with the same certificate.
	named := &http.Client{Transport: transport.NewUserAgentRoundTripper(rest.DefaultKubernetesUserAgent(), components.Transport)}
	// Ignore warnings: an API server sends one for each write of an EndpointSlice of type FQDN
	// (topology.KubernetesEndpoint).
	kube, err := kubernetes.NewForConfigAndClient(&rest.Config{Host: server, QPS: -1, WarningHandler: rest.NoWarnings{}}, named)
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

// HTTP returns the HTTP client for the Kubernetes components. It verifies the components' certificates.
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

// do sends a request to a component. `in` is encoded as JSON in the body; nil means an empty body.
func (c *Client) do(ctx context.Context, proc topology.Process, method, path string, in any) (*http.Response, error) {
	var body io.Reader
	if in != nil {
		data, err := json.Marshal(in)
		if err != nil {
			return nil, err
		}
		body = bytes.NewReader(data)
	}
	req, err := http.NewRequestWithContext(ctx, method, proc.Address+path, body)
	if err != nil {
		return nil, err
	}
	req.Header.Set("User-Agent", rest.DefaultKubernetesUserAgent()) // as in New
	if proc.Kind == control.KindEtcd {
		return c.etcd.Do(req)
	}
	return c.components.Do(req)
}

// Get sends a GET request to a component's process. It returns an error for a status other than 2xx.
func (c *Client) Get(ctx context.Context, proc topology.Process, path string) error {
	_, err := c.expect(ctx, proc, http.MethodGet, path, nil)
	return err
}

// expect is like do, but returns the first 4 KiB of the response, and an error for a status other than 2xx.
func (c *Client) expect(ctx context.Context, proc topology.Process, method, path string, in any) ([]byte, error) {
	resp, err := c.do(ctx, proc, method, path, in)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, 4<<10))
	if resp.StatusCode/100 != 2 {
		return nil, fmt.Errorf("%s %s: %s: %s", method, proc.Address+path, resp.Status, answer)
	}
	return answer, err
}

// HoldsLease reports whether a leader-elected component holds the lease of its kind. It reads the component's metrics,
// because the holder's identity in the Lease does not identify a process: it consists of the host name and a random
// part.
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

// masterStatus returns the value of leader_election_master_status for a lease. It returns false if the metric is
// missing, for example before the component's first election.
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

// UpdatePeerURL corrects the stored peer URL of a single-member etcd after its ports have changed. With several members
// it does nothing. etcd stores the URL at its first start and ignores --initial-advertise-peer-urls on later starts, so
// `member list` would show the old URL.
func (c *Client) UpdatePeerURL(ctx context.Context, members []topology.Process) error {
	if len(members) > 1 {
		return nil
	}
	etcd := members[0]
	var list struct {
		Members []struct {
			ID       string   `json:"ID"`
			Name     string   `json:"name"`
			PeerURLs []string `json:"peerURLs"`
		} `json:"members"`
	}
	if err := c.CallEtcd(ctx, etcd, "/v3/cluster/member/list", struct{}{}, &list); err != nil {
		return err
	}
	want := []string{etcd.Peer}
	for _, m := range list.Members {
		if m.Name != etcd.Name || slices.Equal(m.PeerURLs, want) {
			continue
		}
		update := map[string]any{"ID": m.ID, "peerURLs": want}
		if err := c.CallEtcd(ctx, etcd, "/v3/cluster/member/update", update, &struct{}{}); err != nil {
			return err
		}
	}
	return nil
}

// EtcdStatus is a member's response to /v3/maintenance/status. The gateway encodes 64-bit numbers as strings.
type EtcdStatus struct {
	Header struct {
		MemberID string `json:"member_id"`
	} `json:"header"`
	Leader  string   `json:"leader"` // the leader's member ID; "" or "0" if unknown
	Term    int64    `json:"raftTerm,string"`
	DBSize  int64    `json:"dbSize,string"`
	DBInUse int64    `json:"dbSizeInUse,string"`
	Errors  []string `json:"errors"` // raised alarms, such as "NOSPACE"
}

// EtcdStatus gets the status of one member.
func (c *Client) EtcdStatus(ctx context.Context, etcd topology.Process) (s EtcdStatus, err error) {
	err = c.CallEtcd(ctx, etcd, "/v3/maintenance/status", struct{}{}, &s)
	if s.Leader == "0" {
		s.Leader = ""
	}
	return s, err
}

// CallEtcd calls a path of the JSON gateway of one etcd member. Because of the gateway, this package does not need
// etcd's client library.
func (c *Client) CallEtcd(ctx context.Context, etcd topology.Process, path string, in, out any) error {
	resp, err := c.do(ctx, etcd, http.MethodPost, path, in)
	if err != nil {
		return fmt.Errorf("%s: %w", etcd.Name, err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	if err != nil {
		return fmt.Errorf("%s %s: %w", etcd.Name, path, err)
	}
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s %s: %s: %s", etcd.Name, path, resp.Status, answer)
	}
	if err := json.Unmarshal(answer, out); err != nil {
		return fmt.Errorf("%s %s: %w", etcd.Name, path, err)
	}
	return nil
}

// DeleteLeases deletes the leases of all elected kinds, so that new leaders do not wait 15 s until the leases expire.
// The holders must have ended.
func (c *Client) DeleteLeases(ctx context.Context) error {
	for _, kind := range control.ElectedKinds() {
		err := c.kube.CoordinationV1().Leases(metav1.NamespaceSystem).Delete(ctx, kind, metav1.DeleteOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("delete the lease of %s: %w", kind, err)
		}
	}
	return nil
}

// CreateServiceAccount creates a service account in the default namespace unless it exists. Pods cannot be created in a
// namespace without the account named default. The controller manager also creates that account, but only about 4 s
// after it becomes the leader, because its requests are limited to 20 per second. Until then, a ready plane would
// refuse pods.
func (c *Client) CreateServiceAccount(ctx context.Context, name string) error {
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name}}
	_, err := c.kube.CoreV1().ServiceAccounts(metav1.NamespaceDefault).Create(ctx, account, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("create the service account %s: %w", name, err)
	}
	return nil
}

// SetBootstrapToken creates the Secret of a bootstrap token, or replaces the token's secret part in it.
func (c *Client) SetBootstrapToken(ctx context.Context, id, secret string) error {
	// API servers also create the namespace, but only some time after they are ready.
	_, err := c.kube.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: metav1.NamespaceSystem}}, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return err
	}
	token := fmt.Sprintf("apiVersion: v1\nkind: Secret\nmetadata: {name: bootstrap-token-%s}\ntype: bootstrap.kubernetes.io/token\n"+
		"stringData: {token-id: %q, token-secret: %q, usage-bootstrap-authentication: \"true\"}\n", id, id, secret)
	return c.Apply(ctx, "/api/v1/namespaces/"+metav1.NamespaceSystem+"/secrets/bootstrap-token-"+id, token)
}

// ServiceAccountToken issues a token for a service account in the default namespace. The token is valid for the given
// number of seconds.
func (c *Client) ServiceAccountToken(ctx context.Context, name string, seconds int64) (string, error) {
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &seconds}}
	answer, err := c.kube.CoreV1().ServiceAccounts(metav1.NamespaceDefault).CreateToken(ctx, name, request, metav1.CreateOptions{})
	if err != nil {
		return "", err
	}
	return answer.Status.Token, nil
}

// Token gets a token for the load from the OIDC issuer.
func (c *Client) Token(ctx context.Context, issuer topology.Process) ([]byte, error) {
	return c.expect(ctx, issuer, http.MethodPost, service.TokenPath, nil)
}

// SetBehaviour sets the delays and failures of a service's responses.
func (c *Client) SetBehaviour(ctx context.Context, proc topology.Process, b service.Behaviour) error {
	_, err := c.expect(ctx, proc, http.MethodPut, service.BehaviourPath, b)
	return err
}

// Apply applies a manifest by server-side apply. path is the API path of the object in the manifest.
func (c *Client) Apply(ctx context.Context, path, manifest string) error {
	err := c.kube.CoreV1().RESTClient().Patch(types.ApplyYAMLPatchType).AbsPath(path).
		Param("fieldManager", "stormglass").Param("force", "true").Body([]byte(manifest)).Do(ctx).Error()
	if err != nil {
		return fmt.Errorf("apply %s: %w", path, err)
	}
	return nil
}

// DeleteSelected deletes the objects that a label selector selects in the collection at path.
func (c *Client) DeleteSelected(ctx context.Context, path, selector string) error {
	err := c.kube.CoreV1().RESTClient().Delete().AbsPath(path).Param("labelSelector", selector).Do(ctx).Error()
	if err != nil {
		return fmt.Errorf("delete %s with %s: %w", path, selector, err)
	}
	return nil
}

// Served returns nil if the API servers respond to a GET request for path with a status of 2xx.
func (c *Client) Served(ctx context.Context, path string) error {
	return c.kube.CoreV1().RESTClient().Get().AbsPath(path).Do(ctx).Error()
}

// ChangeInstances launches and terminates instances of the simulated cloud.
func (c *Client) ChangeInstances(ctx context.Context, cloud topology.Process, change control.Instances) error {
	_, err := c.expect(ctx, cloud, http.MethodPost, service.InstancesPath, change)
	return err
}

// Grant binds a user to a ClusterRole, in all namespaces.
func (c *Client) Grant(ctx context.Context, user, role string) error {
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: user},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
	}
	_, err := c.kube.RbacV1().ClusterRoleBindings().Create(ctx, binding, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("grant rights to %s: %w", user, err)
	}
	return nil
}
