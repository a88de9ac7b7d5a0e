package cluster

import (
	"bytes"
	"context"
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
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/stormglass/stormglass/controlplane/control"
	"github.com/stormglass/stormglass/internal/shell"
	"github.com/stormglass/stormglass/internal/userfile"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

// Config reads a kubeconfig and returns the client configuration of a
// context ("" means the current one) and the name of its cluster.
func Config(path, contextName string) (*rest.Config, string, error) {
	data, err := userfile.Read(path, userfile.Text)
	if err != nil {
		return nil, "", fmt.Errorf("kubeconfig %s: %w (--kubeconfig takes the file that kubectl uses)", path, err)
	}
	if len(bytes.TrimSpace(data)) == 0 {
		return nil, "", fmt.Errorf("kubeconfig %s: the file is empty (--kubeconfig takes the file that kubectl uses)", path)
	}
	file, err := clientcmd.Load(data)
	if err != nil {
		return nil, "", fmt.Errorf("kubeconfig %s: %s (is it a kubeconfig?)", path, oneLine(err))
	}
	if len(file.Contexts) == 0 {
		return nil, "", fmt.Errorf("kubeconfig %s: it has no contexts (is it a kubeconfig?)", path)
	}
	names := strings.Join(slices.Sorted(maps.Keys(file.Contexts)), ", ")
	if contextName == "" {
		contextName = file.CurrentContext
	}
	if contextName == "" {
		return nil, "", fmt.Errorf("kubeconfig %s: no current-context (choose one with --context: %s)", path, names)
	}
	chosen, ok := file.Contexts[contextName]
	if !ok {
		return nil, "", fmt.Errorf("kubeconfig %s: no context %q (it has: %s)", path, contextName, names)
	}
	look := fmt.Sprintf("`kubectl --kubeconfig %s config view` shows it", shell.Quote(path))
	dangling := func(kind, name string) error {
		return fmt.Errorf("kubeconfig %s: context %q names the %s %q, which is not in the file (%s)", path, contextName, kind, name, look)
	}
	if file.Clusters[chosen.Cluster] == nil {
		return nil, "", dangling("cluster", chosen.Cluster)
	}
	if chosen.AuthInfo != "" && file.AuthInfos[chosen.AuthInfo] == nil {
		return nil, "", dangling("user", chosen.AuthInfo)
	}
	for _, cluster := range file.Clusters {
		cluster.LocationOfOrigin = path // relative paths are relative to the file
	}
	for _, user := range file.AuthInfos {
		user.LocationOfOrigin = path
	}
	if err := clientcmd.ResolveLocalPaths(file); err != nil {
		return nil, "", fmt.Errorf("kubeconfig %s: %s (%s)", path, oneLine(err), look)
	}
	if err := checkFiles(file.Clusters[chosen.Cluster], file.AuthInfos[chosen.AuthInfo]); err != nil {
		return nil, "", fmt.Errorf("kubeconfig %s: context %q: %w", path, contextName, err)
	}
	cfg, err := clientcmd.NewNonInteractiveClientConfig(*file, contextName, nil, nil).ClientConfig()
	if err == nil {
		err = checkKeys(cfg)
	}
	if err != nil {
		return nil, "", fmt.Errorf("kubeconfig %s: context %q: %s (%s)", path, contextName, oneLine(err), look)
	}
	cfg.QPS = -1 // a limiter in the client would hide what is offered
	return cfg, chosen.Cluster, nil
}

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
func ownPlane(path string, cfg *rest.Config) bool {
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

// FromKubeconfig makes a target of a user's cluster. It changes nothing
// there: it looks whether the cluster answers, who we are, and whether we may
// do all that the scenario will need. Each error is one line with a hint. tell is told
// what takes its time.
func FromKubeconfig(ctx context.Context, path, contextName, runID string, s *scenario.Scenario, tell func(string)) (*Target, error) {
	t := newTarget(runID, s)
	client, user, err := t.reachFrom(ctx, path, contextName, tell)
	if err != nil {
		return nil, err
	}
	t.own = ownPlane(path, t.Admin)
	defer Waiting(tell, "the cluster to say what we may do")()
	if t.needs, err = loadNeeds(client.Discovery(), t.Namespace, s); err != nil {
		return nil, fmt.Errorf("cluster %s: %w", t.Cluster.Name, err)
	}
	if err := checkAccess(ctx, client, append(adminNeeds(t.Namespace, s), t.needs...)); err != nil {
		return nil, fmt.Errorf("cluster %s: %s %w", t.Cluster.Name, user, err)
	}
	t.offer(apiServerScrape(t.Admin))
	t.Notes = append(t.Notes, differences(s.ControlPlane)...)
	ask, cancel := context.WithTimeout(ctx, reachTimeout)
	defer cancel()
	t.scrapeNotes = t.apiServers(ask, client)
	t.Notes = append(t.Notes, t.scrapeNotes...)
	if s.Nodes.Count > 0 {
		t.Notes = append(t.Notes, "DaemonSets that tolerate every taint place a pod on each simulated node too; those pods go with the nodes")
	}
	return t, nil
}
