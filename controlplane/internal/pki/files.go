package pki

import (
	"crypto/ecdsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"os"

	"github.com/stormglass/stormglass/internal/atomicfile"
)

func readPEM(path string) ([]byte, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	block, _ := pem.Decode(data)
	if block == nil {
		return nil, fmt.Errorf("%s: no PEM block", path)
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

// kubeconfigForm holds everything inline, so that the file works wherever it is copied.
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
    client-certificate-data: %s
    client-key-data: %s
contexts:
- name: stormglass
  context: {cluster: stormglass, user: %s}
current-context: stormglass
`

// Kubeconfig writes a kubeconfig for one identity to path.
func (d Dir) Kubeconfig(path, identity, server string) error {
	var encoded []string
	for _, file := range []string{d.Cert(ServerCA), d.Cert(identity), d.Key(identity)} {
		data, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		encoded = append(encoded, base64.StdEncoding.EncodeToString(data))
	}
	return atomicfile.Write(path, fmt.Appendf(nil, kubeconfigForm, server, encoded[0], identity, encoded[1], encoded[2], identity))
}
