// Package pki creates a plane's credentials: a certificate authority for each trust domain, one or more ECDSA P-256 key
// pairs and certificates for each component, the signing key for service account tokens, and kubeconfigs.
//
// The authorities must be separate for two reasons. etcd admits every client with a certificate of its authority, so a
// kubelet's certificate must come from another authority. And a client with a certificate of the request-header
// authority may claim to be any user.
package pki

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"

	"github.com/stormglass/stormglass/internal/atomicfile"
)

const (
	authorityLife = 10 * 365 * 24 * time.Hour
	leafLife      = 365 * 24 * time.Hour
	// backdate is the time between the start of a certificate's validity and its creation. The certificate then stays
	// valid if the clock is set back a little.
	backdate = 5 * time.Minute
)

// Authority is a certificate authority.
type Authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// Leaf describes a certificate to issue.
type Leaf struct {
	// CommonName is the user name of a client, and Organizations are its groups.
	CommonName    string
	Organizations []string
	// Client and Server say whether the certificate is valid for clients and for servers.
	Client, Server bool
	// DNSNames and IPs are the names and addresses at which clients reach the server.
	DNSNames []string
	IPs      []net.IP
}

// loadAuthority reads an authority from dir/name.crt and dir/name.key, or creates it if neither file exists.
func loadAuthority(dir, name string, now time.Time) (*Authority, error) {
	crt, key := filepath.Join(dir, name+".crt"), filepath.Join(dir, name+".key")
	a, err := readAuthority(crt, key)
	if errors.Is(err, fs.ErrNotExist) {
		return makeAuthority(crt, key, name, now)
	}
	if err != nil {
		return nil, err
	}
	if now.After(a.cert.NotAfter) {
		return nil, fmt.Errorf("%s: the certificate authority expired on %s", crt, a.cert.NotAfter.Format(time.DateOnly))
	}
	return a, nil
}

func readAuthority(crt, key string) (*Authority, error) {
	block, err := readPEM(crt)
	if err != nil {
		return nil, err
	}
	cert, err := x509.ParseCertificate(block)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", crt, err)
	}
	private, err := readKey(key)
	if err != nil {
		return nil, err
	}
	if !private.PublicKey.Equal(cert.PublicKey) {
		return nil, fmt.Errorf("%s: this key does not belong to %s", key, crt)
	}
	return &Authority{cert, private}, nil
}

func makeAuthority(crt, key, name string, now time.Time) (*Authority, error) {
	for _, file := range []string{crt, key} { // in a new plane, neither file exists
		if _, err := os.Lstat(file); err == nil {
			return nil, fmt.Errorf("%s exists, but the other file of the key pair is missing", file)
		}
	}
	a, err := NewAuthority(name, now)
	if err == nil {
		err = writeKey(key, a.key)
	}
	if err == nil {
		err = atomicfile.Write(crt, a.PEM())
	}
	return a, err
}

// NewAuthority creates an authority in memory, without writing files.
func NewAuthority(name string, now time.Time) (*Authority, error) {
	private, err := newKey()
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		Subject:               pkix.Name{CommonName: "stormglass-" + name},
		NotBefore:             now.Add(-backdate),
		NotAfter:              now.Add(authorityLife),
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
		BasicConstraintsValid: true,
		IsCA:                  true,
	}
	der, err := sign(template, template, private, private)
	if err != nil {
		return nil, err
	}
	cert, err := x509.ParseCertificate(der)
	return &Authority{cert, private}, err
}

// Issue creates a certificate and its private key, both in PEM.
func (a *Authority) Issue(leaf Leaf, now time.Time) (cert, key []byte, err error) {
	private, err := newKey()
	if err != nil {
		return nil, nil, err
	}
	template := &x509.Certificate{
		Subject:               pkix.Name{CommonName: leaf.CommonName, Organization: leaf.Organizations},
		NotBefore:             now.Add(-backdate),
		NotAfter:              now.Add(leafLife),
		KeyUsage:              x509.KeyUsageDigitalSignature,
		BasicConstraintsValid: true,
		DNSNames:              leaf.DNSNames,
		IPAddresses:           leaf.IPs,
	}
	if leaf.Client {
		template.ExtKeyUsage = append(template.ExtKeyUsage, x509.ExtKeyUsageClientAuth)
	}
	if leaf.Server {
		template.ExtKeyUsage = append(template.ExtKeyUsage, x509.ExtKeyUsageServerAuth)
	}
	der, err := sign(template, a.cert, private, a.key)
	if err != nil {
		return nil, nil, fmt.Errorf("sign the certificate of %s: %w", leaf.CommonName, err)
	}
	key, err = encodeKey(private)
	return encodeCert(der), key, err
}

// Authority returns the certificate of an authority, in PEM.
func (d Dir) Authority(name string) ([]byte, error) { return os.ReadFile(d.Cert(name)) }

// PEM returns the authority's certificate in PEM.
func (a *Authority) PEM() []byte { return encodeCert(a.cert.Raw) }

func sign(template, parent *x509.Certificate, subject, signer *ecdsa.PrivateKey) ([]byte, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return nil, err
	}
	template.SerialNumber = serial
	return x509.CreateCertificate(rand.Reader, template, parent, &subject.PublicKey, signer)
}

func newKey() (*ecdsa.PrivateKey, error) {
	return ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
}

func encodeCert(der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

// encodeKey encodes a key in SEC 1 format ("EC PRIVATE KEY"), which all programs that read service account keys accept.
func encodeKey(key *ecdsa.PrivateKey) ([]byte, error) {
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der}), nil
}

func readPEM(path string) ([]byte, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	block, _ := pem.Decode(data)
	if block == nil {
		return nil, fmt.Errorf("%s: the file contains no PEM block", path)
	}
	return block.Bytes, nil
}

func readKey(path string) (*ecdsa.PrivateKey, error) {
	der, err := readPEM(path)
	if err != nil {
		return nil, err
	}
	key, err := x509.ParseECPrivateKey(der)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return key, nil
}

func writeKey(path string, key *ecdsa.PrivateKey) error {
	data, err := encodeKey(key)
	if err != nil {
		return err
	}
	return atomicfile.Write(path, data)
}

// kubeconfigForm is the template of a kubeconfig. It embeds certificates and keys, so that a kubeconfig with a client
// certificate needs no other file. It does not embed a token, but names its file.
const kubeconfigForm = `apiVersion: v1
kind: Config
clusters:
- name: stormglass
  cluster:
    server: %s
    certificate-authority-data: %s
users:
- name: %s
  user:
%scontexts:
- name: stormglass
  context: {cluster: stormglass, user: %s}
current-context: stormglass
`

// Kubeconfig writes a kubeconfig to path. Clients that use it authenticate as identity with a client certificate.
func (d Dir) Kubeconfig(path, identity, server string) error {
	cert, err := os.ReadFile(d.Cert(identity))
	if err != nil {
		return err
	}
	key, err := os.ReadFile(d.Key(identity))
	if err != nil {
		return err
	}
	encode := base64.StdEncoding.EncodeToString
	return d.kubeconfig(path, identity, server, fmt.Sprintf("    client-certificate-data: %s\n    client-key-data: %s\n", encode(cert), encode(key)))
}

// TokenKubeconfig writes a kubeconfig to path. Clients that use it authenticate as identity with a token. They read the
// token from the file at the path `token`, because the token may change later.
func (d Dir) TokenKubeconfig(path, identity, server, token string) error {
	return d.kubeconfig(path, identity, server, fmt.Sprintf("    tokenFile: %q\n", token))
}

func (d Dir) kubeconfig(path, identity, server, credentials string) error {
	authority, err := os.ReadFile(d.Cert(ServerCA))
	if err != nil {
		return err
	}
	return atomicfile.Write(path, fmt.Appendf(nil, kubeconfigForm, server, base64.StdEncoding.EncodeToString(authority), identity, credentials, identity))
}
