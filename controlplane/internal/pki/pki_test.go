package pki_test

import (
	"crypto/ecdsa"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/stormglass/stormglass/controlplane/internal/pki"
)

var (
	now       = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	serviceIP = net.IPv4(10, 96, 0, 1)
)

func keys(t *testing.T) pki.Dir {
	t.Helper()
	d := pki.Dir(filepath.Join(t.TempDir(), "pki"))
	if err := d.Ensure(now, serviceIP); err != nil {
		t.Fatal(err)
	}
	return d
}

func load(t *testing.T, d pki.Dir, name string) *x509.Certificate {
	t.Helper()
	pair, err := tls.LoadX509KeyPair(d.Cert(name), d.Key(name)) // LoadX509KeyPair also checks that the key belongs to the certificate
	if err != nil {
		t.Fatal(err)
	}
	return pair.Leaf
}

func verify(t *testing.T, d pki.Dir, identity, authority string, use x509.ExtKeyUsage, host string) error {
	t.Helper()
	roots := x509.NewCertPool()
	roots.AddCert(load(t, d, authority))
	_, err := load(t, d, identity).Verify(x509.VerifyOptions{Roots: roots, CurrentTime: now, KeyUsages: []x509.ExtKeyUsage{use}, DNSName: host})
	return err
}

var authorities = []string{pki.ClientCA, pki.ServerCA, pki.RequestHeaderCA, pki.EtcdCA, pki.EtcdPeerCA}

// TestTrustDomains checks that each certificate is valid in its own trust domain and in no other.
func TestTrustDomains(t *testing.T) {
	d := keys(t)
	for identity, want := range map[string]string{
		pki.Admin: pki.ClientCA, pki.Loadgen: pki.ClientCA, pki.Scrape: pki.ClientCA, pki.Scheduler: pki.ClientCA, pki.Controllers: pki.ClientCA,
		pki.APIServerAggregator: pki.RequestHeaderCA,
		pki.APIServerEtcd:       pki.EtcdCA, pki.EtcdClient: pki.EtcdCA, pki.EtcdScrape: pki.EtcdCA,
		pki.EtcdPeer: pki.EtcdPeerCA,
	} {
		for _, authority := range authorities {
			err := verify(t, d, identity, authority, x509.ExtKeyUsageClientAuth, "")
			if (err == nil) != (authority == want) {
				t.Errorf("verification of %s with authority %s = %v; valid authority: %s", identity, authority, err, want)
			}
		}
	}
}

func TestServers(t *testing.T) {
	d := keys(t)
	for identity, authority := range map[string]string{
		pki.APIServer: pki.ServerCA, pki.SchedulerServing: pki.ServerCA, pki.ControllersServing: pki.ServerCA, pki.EtcdServing: pki.EtcdCA, pki.EtcdPeer: pki.EtcdPeerCA,
	} {
		for _, host := range []string{"127.0.0.1", "localhost"} {
			if err := verify(t, d, identity, authority, x509.ExtKeyUsageServerAuth, host); err != nil {
				t.Errorf("verification of %s at %s = %v, want nil", identity, host, err)
			}
		}
	}
	if err := verify(t, d, pki.APIServer, pki.ServerCA, x509.ExtKeyUsageServerAuth, "kubernetes.default.svc"); err != nil {
		t.Error(err)
	}
	if err := verify(t, d, pki.EtcdPeer, pki.EtcdPeerCA, x509.ExtKeyUsageServerAuth, "etcd-4."+pki.PeerDomain); err != nil {
		t.Errorf("verification of an etcd member by its peer name = %v, want nil", err)
	}
	if err := verify(t, d, pki.EtcdServing, pki.EtcdCA, x509.ExtKeyUsageServerAuth, "etcd-4."+pki.PeerDomain); err == nil {
		t.Error("etcd's client certificate is valid for a peer name")
	}
	if err := verify(t, d, pki.Admin, pki.ClientCA, x509.ExtKeyUsageServerAuth, ""); err == nil {
		t.Error("a user's certificate is valid for a server")
	}
	if err := verify(t, d, pki.APIServer, pki.ServerCA, x509.ExtKeyUsageClientAuth, ""); err == nil {
		t.Error("the API server's serving certificate is valid for a client")
	}
}

func TestUsers(t *testing.T) {
	d := keys(t)
	for identity, want := range map[string]string{
		pki.Admin:       "stormglass-admin system:masters",
		pki.Loadgen:     "stormglass-loadgen system:monitoring,stormglass:loadgen", // never system:masters, which is exempt from priority and fairness
		pki.Scrape:      "stormglass-scrape system:monitoring",
		pki.Scheduler:   "system:kube-scheduler ",
		pki.Controllers: "system:kube-controller-manager ",
	} {
		subject := load(t, d, identity).Subject
		if got := subject.CommonName + " " + strings.Join(subject.Organization, ","); got != want {
			t.Errorf("user and groups of %s = %q, want %q", identity, got, want)
		}
	}
}

func TestModesAndKeys(t *testing.T) {
	d := keys(t)
	info, err := os.Stat(string(d))
	if err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("mode of the directory = %v %v, want 0700", info.Mode(), err)
	}
	files, err := os.ReadDir(string(d))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if info, err := f.Info(); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("mode of %s = %v %v, want 0600", f.Name(), info.Mode(), err)
		}
	}
	if key, ok := load(t, d, pki.Admin).PublicKey.(*ecdsa.PublicKey); !ok || key.Params().Name != "P-256" {
		t.Errorf("the key has type %T, want an ECDSA P-256 key", key)
	}
}

// TestResume checks that Ensure, called again years later, keeps the authorities and keys and renews all other
// certificates.
func TestResume(t *testing.T) {
	d := keys(t)
	before := map[string]string{}
	kept := []string{d.ServiceAccountKey(), d.ServiceAccountPublic()}
	for _, a := range authorities {
		kept = append(kept, d.Cert(a), d.Key(a))
	}
	for _, file := range kept {
		before[file] = read(t, file)
	}
	old := load(t, d, pki.Admin)
	later := now.AddDate(3, 0, 0)
	if err := d.Ensure(later, serviceIP); err != nil {
		t.Fatal(err)
	}
	for _, file := range kept {
		if read(t, file) != before[file] {
			t.Errorf("Ensure changed %s", file)
		}
	}
	if renewed := load(t, d, pki.Admin); renewed.Equal(old) || renewed.NotAfter.Before(later) {
		t.Errorf("the admin's certificate is valid until %v", renewed.NotAfter)
	}
}

func TestDamagedKeysAreReported(t *testing.T) {
	for name, damage := range map[string]func(pki.Dir) error{
		"client-ca.key: the file contains no PEM block":         func(d pki.Dir) error { return os.WriteFile(d.Key(pki.ClientCA), []byte("x"), 0o600) },
		"exists, but the other file of the key pair is missing": func(d pki.Dir) error { return os.Remove(d.Cert(pki.EtcdCA)) },
		"this key does not belong to":                           func(d pki.Dir) error { return os.Rename(d.Key(pki.EtcdCA), d.Key(pki.ServerCA)) },
		"service-account.key: the file contains no PEM block":   func(d pki.Dir) error { return os.WriteFile(d.ServiceAccountKey(), nil, 0o600) },
	} {
		d := keys(t)
		if err := damage(d); err != nil {
			t.Fatal(err)
		}
		if err := d.Ensure(now, serviceIP); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("Ensure = %v, want %q", err, name)
		}
	}
	d := keys(t)
	if err := d.Ensure(now.AddDate(11, 0, 0), serviceIP); err == nil || !strings.Contains(err.Error(), "expired") {
		t.Errorf("Ensure with an expired authority = %v, want an error about the expiry", err)
	}
}

func TestKubeconfig(t *testing.T) {
	d := keys(t)
	file := filepath.Join(t.TempDir(), "admin.kubeconfig")
	if err := d.Kubeconfig(file, pki.Admin, "https://127.0.0.1:6443"); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode = %v %v, want 0600", info.Mode(), err)
	}
	var k struct {
		Clusters []struct {
			Cluster struct {
				Server string
				CA     string `json:"certificate-authority-data"`
			}
		}
		Users []struct {
			User struct {
				Cert string `json:"client-certificate-data"`
				Key  string `json:"client-key-data"`
			}
		}
	}
	if err := yaml.UnmarshalStrict([]byte(read(t, file)), &map[string]any{}); err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal([]byte(read(t, file)), &k); err != nil {
		t.Fatal(err)
	}
	for encoded, want := range map[string]string{k.Clusters[0].Cluster.CA: d.Cert(pki.ServerCA), k.Users[0].User.Cert: d.Cert(pki.Admin), k.Users[0].User.Key: d.Key(pki.Admin)} {
		if data, err := base64.StdEncoding.DecodeString(encoded); err != nil || string(data) != read(t, want) {
			t.Errorf("the kubeconfig does not contain %s: %v", want, err)
		}
	}
	if k.Clusters[0].Cluster.Server != "https://127.0.0.1:6443" {
		t.Errorf("server = %s, want https://127.0.0.1:6443", k.Clusters[0].Cluster.Server)
	}
}

func read(t *testing.T, file string) string {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
