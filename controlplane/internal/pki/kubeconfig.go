package pki

import (
	"encoding/base64"
	"fmt"
	"os"
)

// kubeconfigForm holds everything inline, so that the file works wherever it
// is copied.
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
	return WriteFile(path, fmt.Appendf(nil, kubeconfigForm, server, encoded[0], identity, encoded[1], encoded[2], identity))
}
