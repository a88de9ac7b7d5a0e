package pki

import (
	"crypto/ecdsa"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/stormglass/stormglass/controlplane/control"
	"github.com/stormglass/stormglass/internal/atomicfile"
)

// The certificate authorities, one for each trust domain.
const (
	ClientCA        = "client-ca"         // issues certificates of kube-apiserver's clients, and certificates of kubelets
	ServerCA        = "server-ca"         // issues serving certificates of the Kubernetes components
	RequestHeaderCA = "request-header-ca" // issues certificates of clients that may act for another user (aggregation)
	EtcdCA          = "etcd-ca"           // issues certificates of etcd's clients, and etcd's serving certificate
	EtcdPeerCA      = "etcd-peer-ca"      // issues certificates for connections between etcd members
)

// The identities, one per component and purpose.
const (
	APIServer           = "kube-apiserver"            // serving certificate of kube-apiserver
	APIServerEtcd       = "kube-apiserver-etcd"       // client certificate of kube-apiserver for etcd
	APIServerAggregator = "kube-apiserver-aggregator" // client certificate of kube-apiserver for aggregated API servers
	Scheduler           = "kube-scheduler"            // client certificate of kube-scheduler for the API server
	SchedulerServing    = "kube-scheduler-serving"    // serving certificate of kube-scheduler, for its metrics
	Controllers         = "kube-controller-manager"   // client certificate of kube-controller-manager for the API server
	ControllersServing  = "kube-controller-manager-serving"
	MetricsServer       = "metrics-server" // client certificate of metrics-server for the API server and kubelets
	MetricsServing      = "metrics-server-serving"
	CloudControllers    = "cloud-controller-manager" // client certificate for the API server and the cloud's API
	CloudServing        = "cloud-controller-manager-serving"
	EtcdServing         = "etcd"
	EtcdPeer            = "etcd-peer"
	EtcdClient          = "etcdctl"     // client certificate for people who run etcdctl
	EtcdScrape          = "etcd-scrape" // client certificate for etcd's metrics; etcd has no narrower permission for that
	Admin               = "admin"       // client certificate for people, in the group system:masters
	Loadgen             = "loadgen"     // client certificate of loadgen: cluster-admin by RBAC, never system:masters
	Scrape              = "scrape"      // client certificate for reading metrics, in the group system:monitoring
	Services            = "services"    // serving certificate of the programs in package service
	ServicesClient      = "kube-apiserver-services"
	// KubeletClient is the API server's identity for calls to kubelets. It is also the user name in the certificate.
	KubeletClient = "kube-apiserver-kubelet-client"
)

// MetricsServerService is the name of the Service through which API servers reach metrics-server.
const MetricsServerService = "metrics-server"

// PeerDomain is the domain of the names by which etcd members may address each other, such as
// etcd-1.stormglass.invalid. The top-level domain "invalid" is reserved (RFC 2606), so that no other host can have
// these names.
const PeerDomain = "stormglass.invalid"

// Dir is a directory with the keys and certificates of a plane.
type Dir string

// Cert returns the path of the certificate of an authority or identity, and Key the path of its private key.
func (d Dir) Cert(name string) string { return filepath.Join(string(d), name+".crt") }
func (d Dir) Key(name string) string  { return filepath.Join(string(d), name+".key") }

// Pair returns the paths of a certificate and its private key.
func (d Dir) Pair(name string) control.KeyPair {
	return control.KeyPair{CertFile: d.Cert(name), KeyFile: d.Key(name)}
}

// ServiceAccountKey returns the path of the key that signs service account tokens. ServiceAccountPublic returns the
// path of the key that verifies them.
func (d Dir) ServiceAccountKey() string    { return d.Key("service-account") }
func (d Dir) ServiceAccountPublic() string { return filepath.Join(string(d), "service-account.pub") }

// Ensure creates missing keys and certificates. It keeps authorities and the key for service account tokens for the
// plane's life. Each call issues all other certificates again, so that they do not expire even if a plane is stopped
// and started for years. serviceIP is the address of the `kubernetes` Service.
func (d Dir) Ensure(now time.Time, serviceIP net.IP) error {
	if err := os.MkdirAll(string(d), 0o700); err != nil {
		return err
	}
	if err := d.serviceAccounts(); err != nil {
		return err
	}
	authorities := map[string]*Authority{}
	for _, name := range []string{ClientCA, ServerCA, RequestHeaderCA, EtcdCA, EtcdPeerCA} {
		a, err := loadAuthority(string(d), name, now)
		if err != nil {
			return err
		}
		authorities[name] = a
	}
	for _, id := range identities(serviceIP) {
		cert, key, err := authorities[id.authority].Issue(id.leaf, now)
		if err != nil {
			return err
		}
		if err := atomicfile.Write(d.Key(id.name), key); err != nil {
			return err
		}
		if err := atomicfile.Write(d.Cert(id.name), cert); err != nil {
			return err
		}
	}
	return nil
}

// OwnUsers returns the names of the plane's own users that do not begin with "system:".
func OwnUsers() []string { return []string{adminUser, scrapeUser, KubeletClient, ServicesClient} }

const (
	adminUser  = "stormglass-admin"
	scrapeUser = "stormglass-scrape"
)

// EncryptionKeyFile returns the path of the key that encrypts Secrets. KeyCount returns the path of the file with the
// number of keys that a kind of service has had; the file exists only after a key rotation. LoadToken returns the path
// of the token with which the load authenticates; the file exists only if the load uses a token.
func (d Dir) EncryptionKeyFile() string   { return d.Key("encryption") }
func (d Dir) KeyCount(kind string) string { return filepath.Join(string(d), kind+".count") }
func (d Dir) LoadToken() string           { return filepath.Join(string(d), Loadgen+".token") }

// EncryptionKey returns the key that encrypts Secrets, 32 random bytes. The first call creates the key, and later calls
// return the same key.
func (d Dir) EncryptionKey() ([]byte, error) {
	path := d.EncryptionKeyFile()
	key, err := os.ReadFile(path)
	if !errors.Is(err, fs.ErrNotExist) {
		if err == nil && len(key) != encryptionKeySize {
			err = fmt.Errorf("%s: the key has %d bytes, not %d (restore the file: without it, the encrypted Secrets cannot be read)", path, len(key), encryptionKeySize)
		}
		return key, err
	}
	key = make([]byte, encryptionKeySize)
	_, _ = rand.Read(key) // never fails
	return key, atomicfile.Write(path, key)
}

const encryptionKeySize = 32

// Issue creates a certificate signed by an authority, without writing files.
func (d Dir) Issue(authority string, leaf Leaf, now time.Time) (cert, key []byte, err error) {
	a, err := readAuthority(d.Cert(authority), d.Key(authority))
	if err != nil {
		return nil, nil, err
	}
	return a.Issue(leaf, now)
}

type identity struct {
	name, authority string
	leaf            Leaf
}

func identities(serviceIP net.IP) []identity {
	loopback := []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback}
	user := func(name, user string, groups ...string) identity {
		return identity{name, ClientCA, Leaf{CommonName: user, Organizations: groups, Client: true}}
	}
	serving := func(name, kind string) identity {
		return identity{name, ServerCA, Leaf{CommonName: kind, Server: true, DNSNames: []string{"localhost"}, IPs: loopback}}
	}
	etcdUser := func(name string) identity {
		return identity{name, EtcdCA, Leaf{CommonName: name, Client: true}}
	}
	// Pods address the API server by these names too.
	api := serving(APIServer, control.KindAPIServer)
	api.leaf.DNSNames = append(api.leaf.DNSNames, "kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local")
	api.leaf.IPs = append(api.leaf.IPs[:2:2], serviceIP)
	// The aggregator verifies metrics-server by the name of its Service.
	metrics := serving(MetricsServing, control.KindMetricsServer)
	metrics.leaf.DNSNames = append(metrics.leaf.DNSNames, MetricsServerService+".kube-system.svc")
	return []identity{
		api,
		metrics,
		// The user and the groups have the names of the service account in an installation of metrics-server: API
		// servers choose the priority level of metrics-server's requests by these names.
		user(MetricsServer, "system:serviceaccount:kube-system:metrics-server", "system:serviceaccounts", "system:serviceaccounts:kube-system"),
		serving(SchedulerServing, control.KindScheduler),
		serving(ControllersServing, control.KindControllerManager),
		user(Scheduler, "system:kube-scheduler"),
		user(Controllers, "system:kube-controller-manager"),
		serving(CloudServing, control.KindCloudControllerManager),
		user(CloudControllers, "system:cloud-controller-manager"),
		user(Admin, adminUser, "system:masters"),
		// API servers continue the traces of clients in system:masters and system:monitoring only.
		user(Loadgen, control.LoadUser, control.LoadGroup, "system:monitoring"),
		user(KubeletClient, KubeletClient),
		user(ServicesClient, ServicesClient),
		serving(Services, "stormglass-service"),
		user(Scrape, scrapeUser, "system:monitoring"),
		{APIServerAggregator, RequestHeaderCA, Leaf{CommonName: "front-proxy-client", Client: true}},
		// etcd's HTTP gateway connects to etcd itself, with etcd's own serving certificate as the client certificate.
		{EtcdServing, EtcdCA, Leaf{CommonName: "etcd", Server: true, Client: true, DNSNames: []string{"localhost"}, IPs: loopback}},
		{EtcdPeer, EtcdPeerCA, Leaf{CommonName: "etcd", Server: true, Client: true, DNSNames: []string{"localhost", "*." + PeerDomain}, IPs: loopback}},
		etcdUser(APIServerEtcd),
		etcdUser(EtcdClient),
		etcdUser(EtcdScrape),
	}
}

func (d Dir) serviceAccounts() error {
	key, err := KeepKey(d.ServiceAccountKey())
	if err != nil {
		return err
	}
	der, err := x509.MarshalPKIXPublicKey(&key.PublicKey)
	if err != nil {
		return fmt.Errorf("%s: %w", d.ServiceAccountKey(), err)
	}
	return atomicfile.Write(d.ServiceAccountPublic(), pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}))
}

// KeepKey reads a private key, or creates it if the file is missing.
func KeepKey(path string) (*ecdsa.PrivateKey, error) {
	key, err := readKey(path)
	if errors.Is(err, fs.ErrNotExist) {
		if key, err = newKey(); err == nil {
			err = writeKey(path, key)
		}
	}
	return key, err
}

// CountKeys returns the number of keys that a service has had: 1, plus 1 for each rotation. The number is also the ID
// of the newest key.
func CountKeys(file string) (int, error) {
	text, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return 1, nil
	}
	if err != nil {
		return 0, err
	}
	n, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil || n < 1 {
		return 0, fmt.Errorf("%s: %q is not a number of keys", file, text)
	}
	return n, nil
}

// AddKey adds a new key for a kind of service, by incrementing the number of its keys.
func (d Dir) AddKey(kind string) error {
	n, err := CountKeys(d.KeyCount(kind))
	if err != nil {
		return err
	}
	return atomicfile.Write(d.KeyCount(kind), fmt.Appendln(nil, n+1))
}
