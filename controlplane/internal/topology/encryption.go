package topology

import (
	"encoding/base64"
	"fmt"
	"slices"

	"github.com/stormglass/stormglass/controlplane/control"
)

// EncryptionConfig returns the content of the file Layout.Encryption for an API server. With it, the API server writes
// Secrets with the configured provider, and reads Secrets that are in plain text or were written with any provider.
func EncryptionConfig(cfg control.Config, l Layout, apiServer string, key []byte) []byte {
	provider := cfg.APIServer.Encryption
	providers := control.EncryptionProviders()
	slices.SortStableFunc(providers, func(a, b string) int {
		switch provider {
		case a:
			return -1
		case b:
			return 1
		}
		return 0
	})
	text := `apiVersion: apiserver.config.k8s.io/v1
kind: EncryptionConfiguration
resources:
- resources: [secrets]
  providers:
`
	if provider == control.EncryptionKMS {
		text += fmt.Sprintf("  - kms: {apiVersion: v2, name: stormglass, endpoint: %q}\n", "unix://"+l.Socket(pluginOf(apiServer)))
	}
	for _, p := range providers {
		text += fmt.Sprintf("  - %s: {keys: [{name: stormglass, secret: %s}]}\n", p, base64.StdEncoding.EncodeToString(key))
	}
	return []byte(text + "  - identity: {}\n")
}

func (c *component) encrypt(cfg control.Config, l Layout) {
	if cfg.Encrypted() {
		c.setDeviation("encryption-provider-config", l.Encryption(c.process.Name), "", "apiServer.encryption: Secrets are encrypted in etcd by "+cfg.APIServer.Encryption)
	}
}

// pluginOf returns the name of the KMS plugin of an API server.
func pluginOf(apiServer string) string {
	s, _ := control.ParseSelector(apiServer)
	return control.ComponentName(control.KindKMSPlugin, s.Index)
}
