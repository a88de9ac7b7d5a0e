package controlplane_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io/fs"
	"math/big"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/stormglass/stormglass/controlplane/control"
)

func TestAnonymousRequestsAreRefused(t *testing.T) {
	c := shared.Cluster()
	stranger := https(t, c.CAFile, control.KeyPair{})
	for _, path := range []string{"/api/v1/namespaces", "/version", "/readyz", "/metrics"} {
		if code, body, err := do(t, stranger, http.MethodGet, c.Server+path, ""); code != http.StatusUnauthorized {
			t.Errorf("anonymous GET %s = %d %s %v, want 401", path, code, body, err)
		}
	}
	body := `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"intruder"}}`
	if code, answer, err := do(t, stranger, http.MethodPost, c.Server+"/api/v1/namespaces/default/configmaps", body); code != http.StatusUnauthorized {
		t.Errorf("anonymous POST = %d %s %v, want 401", code, answer, err)
	}
	for _, component := range c.Components {
		code, _, err := do(t, https(t, component.Scrape.CAFile, control.KeyPair{}), http.MethodGet, component.Scrape.URL, "")
		if err == nil && code != http.StatusUnauthorized && code != http.StatusForbidden {
			t.Errorf("metrics of %s without a certificate: status %d, want 401 or 403", component.Name, code)
		}
	}
}

// TestTrustDomainsHold checks that etcd refuses client certificates of the API server's domain, and that the API server
// refuses client certificates of etcd's domain.
func TestTrustDomainsHold(t *testing.T) {
	c := shared.Cluster()
	node := nodeCert(t, c, "intruder")
	etcd := https(t, c.Etcd.CAFile, control.KeyPair{})
	etcd.Transport.(*http.Transport).TLSClientConfig.Certificates = []tls.Certificate{node}
	if code, _, err := do(t, etcd, http.MethodGet, c.Etcd.Endpoints[0]+"/health", ""); err == nil {
		t.Errorf("etcd accepted a kubelet's certificate: status %d", code)
	}
	kube := https(t, c.CAFile, c.Etcd.KeyPair)
	if code, body, err := do(t, kube, http.MethodGet, c.Server+"/api", ""); err == nil && code != http.StatusUnauthorized {
		t.Errorf("the API server accepted an etcd client's certificate: %d %s", code, body)
	}
}

// nodeCert creates a kubelet's certificate in the same way as simulated kubelets.
func nodeCert(t *testing.T, c control.Cluster, name string) tls.Certificate {
	t.Helper()
	ca, err := tls.LoadX509KeyPair(c.NodeCA.CertFile, c.NodeCA.KeyFile)
	if err != nil {
		t.Fatal(err)
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()),
		Subject:      pkix.Name{CommonName: "system:node:" + name, Organization: []string{"system:nodes"}},
		NotBefore:    time.Now().Add(-time.Minute), NotAfter: time.Now().Add(time.Hour),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, ca.Leaf, &key.PublicKey, ca.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

func nodeClient(t *testing.T, c control.Cluster, name string) *kubernetes.Clientset {
	t.Helper()
	h := https(t, c.CAFile, control.KeyPair{})
	h.Transport.(*http.Transport).TLSClientConfig.Certificates = []tls.Certificate{nodeCert(t, c, name)}
	kube, err := kubernetes.NewForConfigAndClient(&rest.Config{Host: c.Server}, h)
	if err != nil {
		t.Fatal(err)
	}
	return kube
}

// TestNodeRestriction checks that a kubelet can write only its own node.
func TestNodeRestriction(t *testing.T) {
	c := shared.Cluster()
	ctx := t.Context()
	patch := []byte(`{"status":{"nodeInfo":{"kernelVersion":"mine"}}}`)
	for _, name := range []string{"node-a", "node-b"} {
		kube := nodeClient(t, c, name)
		if _, err := kube.CoreV1().Nodes().Create(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{}); err != nil {
			t.Fatalf("a kubelet could not register itself: %v", err)
		}
		if _, err := kube.CoreV1().Nodes().Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{}, "status"); err != nil {
			t.Errorf("a kubelet could not write its own status: %v", err)
		}
	}
	a := nodeClient(t, c, "node-a")
	if _, err := a.CoreV1().Nodes().Patch(ctx, "node-b", types.MergePatchType, patch, metav1.PatchOptions{}, "status"); !apierrors.IsForbidden(err) {
		t.Errorf("a kubelet wrote another node's status: error %v, want forbidden", err)
	}
	if _, err := a.CoreV1().Secrets("kube-system").List(ctx, metav1.ListOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("a kubelet listed Secrets: error %v, want forbidden", err)
	}
}

// TestLoadgenIsNotInSystemMasters checks that RBAC allows the load generator everything, and that priority and fairness
// applies to it.
func TestLoadgenIsNotInSystemMasters(t *testing.T) {
	c := shared.Cluster()
	out := ok(t, "kubectl", "--dir", c.Dir, "--kubeconfig", c.Kubeconfigs["loadgen"], "auth", "whoami", "-o", "yaml")
	if !strings.Contains(out, "stormglass-loadgen") || strings.Contains(out, "system:masters") {
		t.Errorf("user and groups of loadgen:\n%s", out)
	}
	ok(t, "kubectl", "--dir", c.Dir, "--kubeconfig", c.Kubeconfigs["loadgen"], "auth", "can-i", "*", "*", "--all-namespaces")
	config := https(t, c.CAFile, keyPair(c, "loadgen"))
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, c.Server+"/api/v1/namespaces/default/pods", nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := config.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	exempt := strings.TrimSpace(ok(t, "kubectl", "--dir", c.Dir, "get", "prioritylevelconfiguration", "exempt", "-o", "jsonpath={.metadata.uid}"))
	if got := resp.Header.Get("X-Kubernetes-PF-PriorityLevel-UID"); got == "" || got == exempt {
		t.Errorf("priority level of loadgen = %q, want another level than exempt (%q)", got, exempt)
	}
}

func keyPair(c control.Cluster, name string) control.KeyPair {
	dir := filepath.Join(c.Dir, "pki")
	return control.KeyPair{CertFile: filepath.Join(dir, name+".crt"), KeyFile: filepath.Join(dir, name+".key")}
}

func TestModes(t *testing.T) {
	c := shared.Cluster()
	for _, dir := range []string{".", "pki", "kubeconfigs", "logs", "data", "bin"} {
		if info, err := os.Stat(filepath.Join(c.Dir, dir)); err != nil || info.Mode().Perm() != 0o700 {
			t.Errorf("mode of %s = %v %v, want 0700", dir, info.Mode(), err)
		}
	}
	err := filepath.WalkDir(c.Dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() || strings.HasPrefix(path, filepath.Join(c.Dir, "data")) {
			return err
		}
		info, err := e.Info()
		if err == nil && info.Mode().Perm() != 0o600 {
			t.Errorf("mode of %s = %v, want 0600", path, info.Mode())
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// TestMetrics checks that the scrape identity can read every component's metrics, and that each component exports its
// own metric families. All components are linked into one binary. If linking a component registered its families, the
// metrics would mix.
func TestMetrics(t *testing.T) {
	own := map[string]string{
		control.KindEtcd:              "etcd_disk_wal_fsync_duration_seconds",
		control.KindAPIServer:         "apiserver_request_duration_seconds",
		control.KindScheduler:         "scheduler_scheduling_algorithm_duration_seconds",
		control.KindControllerManager: "ttl_after_finished_controller_job_deletion_duration_seconds",
	}
	foreign := map[string][]string{
		control.KindEtcd:              {"apiserver_", "kubernetes_", "scheduler_", "workqueue_", "rest_client_"},
		control.KindAPIServer:         {"etcd_server_", "etcd_disk_", "scheduler_", "leader_election_"},
		control.KindScheduler:         {"etcd_", "apiserver_request_"},
		control.KindControllerManager: {"etcd_", "apiserver_request_", "scheduler_"},
	}
	for _, component := range shared.Cluster().Components {
		s := component.Scrape
		scraper := https(t, s.CAFile, control.KeyPair{CertFile: s.CertFile, KeyFile: s.KeyFile})
		var body string
		// The controllers register their families when they start, some seconds after the lease is acquired.
		eventually(t, 30*time.Second, component.Name+" exports "+own[component.Kind], func() bool {
			var code int
			var err error
			if code, body, err = do(t, scraper, http.MethodGet, s.URL, ""); err != nil { // a component that loses its lease restarts
				return false
			}
			if code != http.StatusOK {
				t.Fatalf("GET /metrics of %s = %d, want 200", component.Name, code)
			}
			return strings.Contains(body, "\n# TYPE "+own[component.Kind]+" ")
		})
		for _, prefix := range foreign[component.Kind] {
			if strings.Contains(body, "\n# TYPE "+prefix) {
				t.Errorf("%s exports metric families of another component: %s...", component.Name, prefix)
			}
		}
	}
}

// TestKubeletCSR checks that the controller manager signs a kubelet's certificate request with the authority that the
// API server trusts.
func TestKubeletCSR(t *testing.T) {
	c := shared.Cluster()
	kube := client(t, c, "loadgen")
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{
		Subject: pkix.Name{CommonName: "system:node:csr", Organization: []string{"system:nodes"}},
	}, key)
	if err != nil {
		t.Fatal(err)
	}
	csrs := kube.CertificatesV1().CertificateSigningRequests()
	_, err = csrs.Create(t.Context(), &certificatesv1.CertificateSigningRequest{
		ObjectMeta: metav1.ObjectMeta{Name: "csr"},
		Spec: certificatesv1.CertificateSigningRequestSpec{
			Request:    pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}),
			SignerName: certificatesv1.KubeAPIServerClientKubeletSignerName,
			Usages:     []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageClientAuth},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	// Use a patch, because the controller manager's approver also writes to a new request.
	approval := `{"status": {"conditions": [{"type": "Approved", "status": "True", "reason": "Test"}]}}`
	csr, err := csrs.Patch(t.Context(), "csr", types.MergePatchType, []byte(approval), metav1.PatchOptions{}, "approval")
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, 30*time.Second, "the request is signed", func() bool {
		csr, err = csrs.Get(t.Context(), "csr", metav1.GetOptions{})
		return err == nil && len(csr.Status.Certificate) > 0
	})
	ca, err := os.ReadFile(c.NodeCA.CertFile)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(ca)
	block, _ := pem.Decode(csr.Status.Certificate)
	cert, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := cert.Verify(x509.VerifyOptions{Roots: roots, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}); err != nil {
		t.Error(err)
	}
}
