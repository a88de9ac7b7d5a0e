package node

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"
	"k8s.io/utils/clock"

	"github.com/stormglass/stormglass/controlplane/control"
)

// Identities provides client configurations for nodes. Its methods may be called concurrently. A Fleet calls them again
// after an error, and to renew a certificate.
type Identities interface {
	// For returns the client configuration of the named node. The user is system:node:NAME in the group system:nodes,
	// except with ServiceAccounts or NewShared.
	For(ctx context.Context, node string) (*rest.Config, error)
	// ForProxies returns the client configuration of the kube-proxies, which all share one identity as on real
	// clusters. They cannot use the nodes' identities, because the Node authorizer does not permit nodes to read
	// EndpointSlices.
	ForProxies(ctx context.Context) (*rest.Config, error)
}

// Authority is an Identities that also signs the nodes' serving certificates.
type Authority interface {
	Identities
	// Serve returns a serving certificate with the subject of the node, valid for the given addresses.
	Serve(ctx context.Context, node string, addresses []netip.Addr) (*tls.Certificate, error)
}

// proxyUser is the user name of the kube-proxies. RBAC's bootstrap policy binds this user only to the ClusterRole
// system:node-proxier.
const proxyUser = "system:kube-proxy"

// once caches the identity of the kube-proxies. Its method get requests an identity at the first call, and a new one
// after 70% of the certificate's validity. If the first request fails, the next call retries. If a renewal fails, get
// retries after rotatePause.
type once struct {
	make  func(context.Context) (*rest.Config, error)
	clock clock.PassiveClock

	mu   sync.Mutex
	made *rest.Config
	due  time.Time // time of the next renewal; zero means never
}

func (o *once) get(ctx context.Context) (*rest.Config, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.made != nil && (o.due.IsZero() || o.clock.Now().Before(o.due)) {
		return o.made, nil
	}
	made, err := o.make(ctx)
	if err != nil {
		o.due = o.clock.Now().Add(rotatePause) // has no effect before the first success
		return nil, err
	}
	o.made = made
	o.due, _ = rotateAt(made, 0, o.clock.Now())
	return made, nil
}

// certLife is the maximum lifetime of a certificate.
const certLife = 7 * 24 * time.Hour

// clockSkew is how far the API server's clock may be behind this machine's clock. A new certificate is valid from
// clockSkew before now.
const clockSkew = 5 * time.Minute

type signer struct {
	base *rest.Config
	ca   *x509.Certificate
	key  crypto.PrivateKey
}

// NewSigner returns an Authority that signs certificates itself, with the key of ca. base provides the API server's
// address and CA; NewSigner does not use the credentials in base.
func NewSigner(base *rest.Config, ca control.KeyPair) (Authority, error) {
	pair, err := tls.LoadX509KeyPair(ca.CertFile, ca.KeyFile)
	if err != nil {
		return nil, fmt.Errorf("read the nodes' CA %s: %w", ca.CertFile, err)
	}
	anonymous, err := serverOnly(base)
	if err != nil {
		return nil, err
	}
	return &signer{base: anonymous, ca: pair.Leaf, key: pair.PrivateKey}, nil
}

// serverOnly returns a copy of c without credentials. It keeps the API server's address, and reads the server's CA into
// memory.
func serverOnly(c *rest.Config) (*rest.Config, error) {
	anonymous := rest.AnonymousClientConfig(c)
	if err := rest.LoadTLSFiles(anonymous); err != nil {
		return nil, fmt.Errorf("read the server's CA: %w", err)
	}
	anonymous.CAFile = ""
	return anonymous, nil
}

func (s *signer) For(_ context.Context, node string) (*rest.Config, error) {
	return s.client(subject(node))
}

func (s *signer) ForProxies(context.Context) (*rest.Config, error) {
	return s.client(pkix.Name{CommonName: proxyUser})
}

func (s *signer) client(subject pkix.Name) (*rest.Config, error) {
	key, certificate, err := s.sign(&x509.Certificate{Subject: subject, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
	if err != nil {
		return nil, err
	}
	return withCert(s.base, key, certificate)
}

func (s *signer) Serve(_ context.Context, node string, addresses []netip.Addr) (*tls.Certificate, error) {
	key, certificate, err := s.sign(&x509.Certificate{
		Subject: subject(node), ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}, IPAddresses: netIPs(addresses),
	})
	if err != nil {
		return nil, err
	}
	return pair(key, certificate)
}

// sign generates a key, completes the template, and signs a certificate for the key.
func (s *signer) sign(template *x509.Certificate) (key *ecdsa.PrivateKey, certificate []byte, err error) {
	if key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err != nil {
		return nil, nil, fmt.Errorf("generate a key for %s: %w", template.Subject.CommonName, err)
	}
	now := time.Now()
	template.NotBefore, template.NotAfter = now.Add(-clockSkew), now.Add(certLife)
	if s.ca.NotAfter.Before(template.NotAfter) {
		template.NotAfter = s.ca.NotAfter
	}
	template.KeyUsage, template.BasicConstraintsValid = x509.KeyUsageDigitalSignature, true
	der, err := x509.CreateCertificate(rand.Reader, template, s.ca, key.Public(), s.key) // chooses a random serial number
	if err != nil {
		return nil, nil, fmt.Errorf("sign a certificate for %s: %w", template.Subject.CommonName, err)
	}
	return key, pem.EncodeToMemory(&pem.Block{Type: cert.CertificateBlockType, Bytes: der}), nil
}

func netIPs(addresses []netip.Addr) (all []net.IP) {
	for _, a := range addresses {
		all = append(all, a.AsSlice())
	}
	return all
}

func pair(key *ecdsa.PrivateKey, certificate []byte) (*tls.Certificate, error) {
	encoded, err := keyutil.MarshalPrivateKeyToPEM(key)
	if err != nil {
		return nil, fmt.Errorf("encode a node's key: %w", err)
	}
	made, err := tls.X509KeyPair(certificate, encoded)
	return &made, err
}

func subject(node string) pkix.Name {
	return pkix.Name{CommonName: "system:node:" + node, Organization: []string{"system:nodes"}}
}

func withCert(base *rest.Config, key *ecdsa.PrivateKey, certificate []byte) (*rest.Config, error) {
	encoded, err := keyutil.MarshalPrivateKeyToPEM(key)
	if err != nil {
		return nil, fmt.Errorf("encode a node's key: %w", err)
	}
	c := rest.CopyConfig(base)
	c.CertData, c.KeyData = certificate, encoded
	return c, nil
}

type shared struct{ config *rest.Config }

// NewShared returns Identities in which all nodes share the identity of config, for fidelity "shared". That identity
// needs a kubelet's permissions on nodes, leases, pods, pods/status and serviceaccounts/token.
func NewShared(config *rest.Config) Identities { return shared{config} }

func (s shared) For(ctx context.Context, _ string) (*rest.Config, error) { return s.ForProxies(ctx) }

func (s shared) ForProxies(context.Context) (*rest.Config, error) {
	if s.config == nil {
		return nil, errors.New("no client configuration given")
	}
	return s.config, nil
}
