package workers

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"math/big"
	"time"
)

// serverName is the name in the coordinator's certificate. It does not depend on the address, because workers reach the
// coordinator through Services and forwarded ports.
const serverName = "coordinator.stormglass.invalid"

// certificateLife is the lifetime of a run's CA.
const certificateLife = 31 * 24 * time.Hour

// secrets holds the credentials with which the coordinator and the workers of one run authenticate each other.
type secrets struct {
	ca    []byte // certificate of the CA, in PEM
	token string
	tls   *tls.Config
}

// newSecrets creates the CA, the server certificate and the token of one run.
func newSecrets() (*secrets, error) {
	now := time.Now()
	authority := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "stormglass workers"},
		NotBefore: now.Add(-time.Hour), NotAfter: now.Add(certificateLife),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	server := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: serverName}, DNSNames: []string{serverName},
		NotBefore: authority.NotBefore, NotAfter: authority.NotAfter,
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	caKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	ca, err := x509.CreateCertificate(rand.Reader, authority, authority, &caKey.PublicKey, caKey)
	if err != nil {
		return nil, err
	}
	leaf, err := x509.CreateCertificate(rand.Reader, server, authority, &key.PublicKey, caKey)
	if err != nil {
		return nil, err
	}
	var token [32]byte
	if _, err := rand.Read(token[:]); err != nil {
		return nil, err
	}
	return &secrets{
		ca: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: ca}), token: hex.EncodeToString(token[:]),
		tls: &tls.Config{MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{{Certificate: [][]byte{leaf}, PrivateKey: key}}},
	}, nil
}

// holds reports whether token is the run's token. The comparison takes constant time.
func (s *secrets) holds(token string) bool {
	is, shown := sha256.Sum256([]byte(s.token)), sha256.Sum256([]byte(token))
	return subtle.ConstantTimeCompare(is[:], shown[:]) == 1
}

// clientTLS returns the TLS configuration of a worker, which trusts only the CA of the run.
func clientTLS(ca []byte) (*tls.Config, error) {
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(ca) {
		return nil, errors.New("the file contains no PEM certificate")
	}
	return &tls.Config{MinVersion: tls.VersionTLS13, RootCAs: roots, ServerName: serverName}, nil
}
