package node

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/stormglass/stormglass/controlplane/control"
	"github.com/stormglass/stormglass/internal/stubapi"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

// patience bounds every wait in these tests. It is far longer than any wait needs.
const patience = 20 * time.Second

// request is a request that the stub received.
type request struct {
	user, method, path, query string
	body                      []byte
	expires                   time.Time // end of the client certificate's validity
}

// stub is an API server with exactly known behaviour: it keeps nodes, leases and pods, serves watches over protobuf,
// and injects the faults of a test.
type stub struct {
	t      testing.TB
	server *httptest.Server
	ca     control.KeyPair
	// traffic of the stub's connections.
	traffic stubapi.Traffic

	mu       sync.Mutex
	version  int
	requests []request
	nodes    map[string]*corev1.Node
	leases   map[string]*coordinationv1.Lease
	pods     map[string]*corev1.Pod // by name
	events   []corev1.Event
	watches  map[*stubWatch]bool
	conns    map[net.Conn]bool
	changed  chan struct{} // closed at each change
	// answer may handle a request: it returns true if it has responded.
	answer func(http.ResponseWriter, request) bool
	// forgetful says that requests are not recorded.
	forgetful bool
	// noWatchList makes it behave as a server before Kubernetes 1.35.
	noWatchList bool
}

type stubWatch struct {
	resource, selector string
	events             chan []byte
	kill               chan struct{}
}

func newStub(t testing.TB) *stub {
	s := &stub{
		t: t, version: 100, nodes: map[string]*corev1.Node{}, leases: map[string]*coordinationv1.Lease{}, pods: map[string]*corev1.Pod{},
		watches: map[*stubWatch]bool{}, conns: map[net.Conn]bool{}, changed: make(chan struct{}),
	}
	s.server = httptest.NewUnstartedServer(s)
	s.server.EnableHTTP2 = true
	s.server.Listener = s.traffic.Count(s.server.Listener)
	s.server.Config.ConnState = func(c net.Conn, state http.ConnState) {
		s.update(func() {
			if state == http.StateClosed {
				delete(s.conns, c)
			} else {
				s.conns[c] = true
			}
		})
	}
	pool := x509.NewCertPool()
	s.ca = newCA(t, pool)
	s.server.TLS = &tls.Config{ClientCAs: pool, ClientAuth: tls.VerifyClientCertIfGiven}
	s.server.StartTLS()
	t.Cleanup(s.server.Close)
	return s
}

func newCA(t testing.TB, pool *x509.CertPool) control.KeyPair {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "client-ca"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	must(t, err)
	cert, err := x509.ParseCertificate(der)
	must(t, err)
	pool.AddCert(cert)
	keyDER, err := x509.MarshalECPrivateKey(key)
	must(t, err)
	pair := control.KeyPair{CertFile: filepath.Join(t.TempDir(), "ca.crt"), KeyFile: filepath.Join(t.TempDir(), "ca.key")}
	must(t, os.WriteFile(pair.CertFile, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600))
	must(t, os.WriteFile(pair.KeyFile, pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: keyDER}), 0o600))
	return pair
}

func (s *stub) config() *rest.Config {
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.server.Certificate().Raw})
	return &rest.Config{Host: s.server.URL, TLSClientConfig: rest.TLSClientConfig{CAData: ca}}
}

// fleet makes a fleet of count nodes against the stub, stopped at the test's end.
func (s *stub) fleet(count int, change func(*Config)) *Fleet {
	s.t.Helper()
	ids, err := NewSigner(s.config(), s.ca)
	must(s.t, err)
	cfg := Config{
		Spec: scenario.Nodes{
			Events: true,
			Count:  count, Fidelity: Lean, Zones: 2, CPU: "4", Memory: "8Gi", Pods: 10, LeaseRenew: scenario.Duration(10 * time.Second),
			StatusReport: scenario.Duration(5 * time.Minute), RegisterRate: 1000,
		},
		Identities: ids, Labels: map[string]string{"stormglass.example/run": "r1"}, NamePrefix: "sg-", Seed: 7, Log: s.t.Logf,
	}
	if change != nil {
		change(&cfg)
	}
	f, err := New(cfg)
	must(s.t, err)
	s.t.Cleanup(func() { f.Stop(s.t.Context()) })
	return f
}

// update changes the stub's state and wakes its waiters.
func (s *stub) update(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
	close(s.changed)
	s.changed = make(chan struct{})
}

// locked calls f with the stub locked. It unlocks even if f ends the test.
func (s *stub) locked(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
}

// await waits until cond, called with the stub locked, holds.
func (s *stub) await(what string, cond func() bool) {
	s.t.Helper()
	deadline := time.After(patience)
	for {
		s.mu.Lock()
		ok, changed := cond(), s.changed
		s.mu.Unlock()
		if ok {
			return
		}
		select {
		case <-changed:
		case <-deadline:
			s.mu.Lock()
			defer s.mu.Unlock()
			for _, r := range s.requests[max(0, len(s.requests)-20):] {
				s.t.Logf("%s %s?%s", r.method, r.path, r.query)
			}
			s.t.Fatalf("waited, and it never came: %s", what)
		}
	}
}

// eventually waits for a state of the fleet that the stub cannot see.
func eventually(t testing.TB, what string, cond func() bool) {
	t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	deadline := time.After(patience)
	for !cond() {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("waited, and it never came: %s", what)
		}
	}
}

// seen returns the requests of a method whose path has the suffix. The caller
// holds the lock, as in await.
func (s *stub) seen(method, suffix string) []request {
	var out []request
	for _, r := range s.requests {
		if r.method == method && strings.HasSuffix(r.path, suffix) {
			out = append(out, r)
		}
	}
	return out
}

func (s *stub) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	q := request{method: r.Method, path: r.URL.Path, query: r.URL.RawQuery, body: body}
	if len(r.TLS.PeerCertificates) > 0 {
		q.user, q.expires = r.TLS.PeerCertificates[0].Subject.CommonName, r.TLS.PeerCertificates[0].NotAfter
	}
	s.update(func() {
		if !s.forgetful {
			s.requests = append(s.requests, q)
		}
	})
	s.mu.Lock()
	answer := s.answer
	s.mu.Unlock()
	if answer != nil && answer(w, q) {
		return
	}
	if r.URL.Query().Get("watch") == "true" {
		s.watch(w, r)
		return
	}
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	last := parts[len(parts)-1]
	switch {
	case strings.Contains(r.URL.Path, "/leases"):
		s.lease(w, q, last)
	case r.Method == "POST" && last == "nodes":
		var n corev1.Node
		s.decode(body, &n)
		s.update(func() {
			n.UID = types.UID("uid-" + n.Name)
			s.nodes[n.Name] = &n
		})
		reply(w, 201, "v1", "Node", &n)
	case r.Method == "POST" && last == "csinodes":
		reply(w, 201, "storage.k8s.io/v1", "CSINode", &storagev1.CSINode{})
	case r.Method == "POST" && last == "events":
		var e corev1.Event
		s.decode(body, &e)
		s.update(func() { s.events = append(s.events, e) })
		reply(w, 201, "v1", "Event", &e)
	case r.Method == "PATCH" && parts[len(parts)-2] == "events":
		reply(w, 200, "v1", "Event", &corev1.Event{})
	case r.Method == "POST" && last == "token":
		reply(w, 201, "v1", "Pod", &corev1.Pod{})
	case strings.Contains(r.URL.Path, "/pods/"):
		s.pod(w, q, parts)
	case r.Method == "GET" && last == "pods":
		s.list(w, r)
	case r.Method == "GET":
		reply(w, 200, "v1", "List", &corev1.PodList{ListMeta: metav1.ListMeta{ResourceVersion: "100"}})
	case r.Method == "PATCH" && last == "status":
		var patch corev1.Node
		must(s.t, json.Unmarshal(body, &patch))
		var n *corev1.Node
		s.update(func() {
			n = s.nodes[parts[len(parts)-2]].DeepCopy()
			for _, c := range patch.Status.Conditions { // a strategic merge, by type
				if at := slices.IndexFunc(n.Status.Conditions, func(old corev1.NodeCondition) bool { return old.Type == c.Type }); at >= 0 {
					n.Status.Conditions[at] = c
				} else {
					n.Status.Conditions = append(n.Status.Conditions, c)
				}
			}
			s.nodes[n.Name] = n
		})
		reply(w, 200, "v1", "Node", n)
	default:
		refuse(w, 404, metav1.StatusReasonNotFound, "no such path "+r.URL.Path)
	}
}

func sortedKeys[V any](m map[string]V) []string {
	var keys []string
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// podAddress returns the address that a status patch sets, or "" before the
// containers run.
func podAddress(r request) string {
	var p corev1.Pod
	if err := json.Unmarshal(r.body, &p); err != nil {
		return fmt.Sprint(err)
	}
	return p.Status.PodIP
}
