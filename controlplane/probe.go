package controlplane

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/stormglass/stormglass/controlplane/control"
	"github.com/stormglass/stormglass/controlplane/internal/pki"
	"github.com/stormglass/stormglass/controlplane/internal/topology"
)

// prober asks the components whether they are ready. Each answer is taken only
// from a server that this plane's own authority vouches for, so that no other
// process on the same port, an old one still draining for example, can give it.
type prober struct {
	plan topology.Plan
	kube *kubernetes.Clientset
	// etcdHTTP and kubeHTTP verify etcd and the Kubernetes components.
	etcdHTTP, kubeHTTP *http.Client
}

func newProber(l topology.Layout, plan topology.Plan) (*prober, error) {
	keys := l.PKI()
	etcdHTTP, err := httpsClient(keys.Cert(pki.EtcdCA), keys.Pair(pki.EtcdClient))
	if err != nil {
		return nil, err
	}
	kubeHTTP, err := httpsClient(keys.Cert(pki.ServerCA), keys.Pair(pki.Admin))
	if err != nil {
		return nil, err
	}
	kube, err := kubernetes.NewForConfigAndClient(&rest.Config{Host: plan.Server, QPS: -1}, kubeHTTP)
	if err != nil {
		return nil, err
	}
	return &prober{plan: plan, kube: kube, etcdHTTP: etcdHTTP, kubeHTTP: kubeHTTP}, nil
}

func (p *prober) close() {
	p.etcdHTTP.CloseIdleConnections()
	p.kubeHTTP.CloseIdleConnections()
}

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

// get expects 200 from a URL.
func get(ctx context.Context, client *http.Client, url string) error {
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

// ready gives nil when a process is ready. begun is when the first of its kind
// was started with the plane; zero for one that is started later.
func (p *prober) ready(ctx context.Context, proc topology.Process, begun time.Time) error {
	switch proc.Kind {
	case control.KindEtcd:
		return p.etcd(ctx, proc, begun)
	case control.KindAPIServer:
		return p.apiServer(ctx, proc)
	}
	if !begun.IsZero() {
		if err := p.led(ctx, proc.Kind, begun); err != nil {
			return err
		}
	}
	return get(ctx, p.kubeHTTP, proc.Address+"/healthz")
}

// etcd is ready when it serves a linearizable read, which needs a leader. One
// that is started later may lack space, which is for whoever started it to
// mend; a plane is not started without.
func (p *prober) etcd(ctx context.Context, proc topology.Process, begun time.Time) error {
	health := proc.Address + "/health"
	if begun.IsZero() {
		health += "?exclude=NOSPACE"
	}
	return get(ctx, p.etcdHTTP, health)
}

// apiServer is ready when it says so and one of them has made the default
// namespace.
func (p *prober) apiServer(ctx context.Context, proc topology.Process) error {
	if err := get(ctx, p.kubeHTTP, proc.Address+"/readyz"); err != nil {
		return err
	}
	return get(ctx, p.kubeHTTP, proc.Address+"/api/v1/namespaces/"+metav1.NamespaceDefault)
}

// led gives nil when one of a kind has taken the lease since they were started.
// It is one of ours: deleteLeases left none.
func (p *prober) led(ctx context.Context, kind string, begun time.Time) error {
	lease, err := p.kube.CoordinationV1().Leases(metav1.NamespaceSystem).Get(ctx, kind, metav1.GetOptions{})
	if err != nil {
		return err
	}
	spec := lease.Spec
	if spec.HolderIdentity == nil || *spec.HolderIdentity == "" || spec.AcquireTime == nil || spec.AcquireTime.Before(&metav1.MicroTime{Time: begun}) {
		return fmt.Errorf("nobody has got the lease %s", lease.Name)
	}
	return nil
}

// deleteLeases removes the leases of leaders that are known to be dead.
func (p *prober) deleteLeases(ctx context.Context) error {
	for _, kind := range []string{control.KindScheduler, control.KindControllerManager} {
		err := p.kube.CoordinationV1().Leases(metav1.NamespaceSystem).Delete(ctx, kind, metav1.DeleteOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("delete the lease of the last %s: %w", kind, err)
		}
	}
	return nil
}

// makeDefaultAccount makes the service account without which no pod can be
// created in the default namespace. The controller manager makes it too, but,
// under its own limit of 20 requests/s, only some 4 s after it leads: the plane
// would call itself ready and refuse pods.
func (p *prober) makeDefaultAccount(ctx context.Context) error {
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "default"}}
	_, err := p.kube.CoreV1().ServiceAccounts(metav1.NamespaceDefault).Create(ctx, account, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("make the default service account: %w", err)
	}
	return nil
}

// grantLoadgen makes the loadgen user a cluster-admin by RBAC.
func (p *prober) grantLoadgen(ctx context.Context) error {
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: pki.LoadgenUser},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: pki.LoadgenUser}},
	}
	_, err := p.kube.RbacV1().ClusterRoleBindings().Create(ctx, binding, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("grant rights to %s: %w", pki.LoadgenUser, err)
	}
	return nil
}
