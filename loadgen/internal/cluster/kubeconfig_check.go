package cluster

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"k8s.io/client-go/rest"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/stormglass/stormglass/controlplane/control"
	"github.com/stormglass/stormglass/internal/userfile"
)

// checkKeys refuses certificates that client-go would leave out, or refuse without a
// hint.
func checkKeys(cfg *rest.Config) error {
	loaded := rest.CopyConfig(cfg)
	if err := rest.LoadTLSFiles(loaded); err != nil {
		return err
	}
	if len(loaded.CAData) > 0 && !x509.NewCertPool().AppendCertsFromPEM(loaded.CAData) {
		return errors.New("certificate-authority holds no certificate in PEM form")
	}
	if len(loaded.CertData) > 0 {
		if _, err := tls.X509KeyPair(loaded.CertData, loaded.KeyData); err != nil {
			return fmt.Errorf("the client certificate cannot be used: %w", err)
		}
	}
	return nil
}

// checkFiles refuses a file that client-go would read without end, not at all, or as if
// it were not named.
func checkFiles(cluster *clientcmdapi.Cluster, user *clientcmdapi.AuthInfo) error {
	files := map[string]string{}
	if cluster != nil {
		files["certificate-authority"] = cluster.CertificateAuthority
	}
	if user != nil {
		files["client-certificate"], files["client-key"], files["tokenFile"] = user.ClientCertificate, user.ClientKey, user.TokenFile
	}
	for _, field := range slices.Sorted(maps.Keys(files)) {
		if name := files[field]; name != "" {
			data, err := userfile.Read(name, userfile.Text)
			if err == nil && len(bytes.TrimSpace(data)) == 0 {
				err = errors.New("the file is empty")
			}
			if err != nil {
				return fmt.Errorf("%s %s: %w (name a file that can be read)", field, name, err)
			}
		}
	}
	return nil
}

func oneLine(err error) string { return strings.Join(strings.Fields(err.Error()), " ") }

// ownPlane reports whether a kubeconfig is one that `controlplane up` wrote for its plane,
// in the plane's directory: a copy elsewhere counts as a user's cluster.
func (k Kubeconfig) ownPlane(cfg *rest.Config) bool {
	path := k.Files
	info, err := os.Stat(path)
	if err != nil {
		return false
	}
	whole, err := filepath.EvalSymlinks(path)
	if err == nil {
		whole, err = filepath.Abs(whole)
	}
	if err != nil {
		return false
	}
	c, err := control.Load(filepath.Dir(filepath.Dir(whole)))
	if err != nil || c.Server != cfg.Host {
		return false
	}
	for _, own := range c.Kubeconfigs {
		if other, err := os.Stat(own); err == nil && os.SameFile(info, other) {
			return true
		}
	}
	return false
}
