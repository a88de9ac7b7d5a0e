package cluster

import (
	"bytes"
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
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
)

// InCluster is the value of Kubeconfig.Files for the ServiceAccount of the pod in which this program runs.
const InCluster = "in-cluster"

// Kubeconfig names a user's cluster, and the identity to use there.
type Kubeconfig struct {
	// Files is the path of a kubeconfig, several paths separated as in $KUBECONFIG, or InCluster. Empty means that the
	// run does not use a user's cluster.
	Files string
	// ConfigOverrides take precedence over the files, as kubectl's flags do.
	clientcmd.ConfigOverrides
}

// CurrentKubeconfig returns the Files that kubectl would use here: $KUBECONFIG, ~/.kube/config, or else InCluster.
func CurrentKubeconfig() (string, error) {
	if files := os.Getenv(clientcmd.RecommendedConfigPathEnvVar); files != "" {
		return files, nil
	}
	if _, err := os.Stat(clientcmd.RecommendedHomeFile); err == nil {
		return clientcmd.RecommendedHomeFile, nil
	}
	if _, err := rest.InClusterConfig(); err != nil {
		return "", fmt.Errorf("there is no kubeconfig in $KUBECONFIG or %s, and this program does not run in a pod: %s (add --kubeconfig FILE)", clientcmd.RecommendedHomeFile, oneLine(err))
	}
	return InCluster, nil
}

// Flags returns the command-line flags that name the same cluster and identity, without the token itself.
func (k Kubeconfig) Flags() string {
	all := [][2]string{
		{"kubeconfig", k.Files},
		{clientcmd.FlagContext, k.CurrentContext},
		{clientcmd.FlagClusterName, k.Context.Cluster},
		{clientcmd.FlagAuthInfoName, k.Context.AuthInfo},
		{clientcmd.FlagAPIServer, k.ClusterInfo.Server},
		{clientcmd.FlagCAFile, k.ClusterInfo.CertificateAuthority},
		{clientcmd.FlagTLSServerName, k.ClusterInfo.TLSServerName},
		{clientcmd.FlagCertFile, k.AuthInfo.ClientCertificate},
		{clientcmd.FlagKeyFile, k.AuthInfo.ClientKey},
		{clientcmd.FlagImpersonate, k.AuthInfo.Impersonate},
		{clientcmd.FlagImpersonateUID, k.AuthInfo.ImpersonateUID},
	}
	for _, group := range k.AuthInfo.ImpersonateGroups {
		all = append(all, [2]string{clientcmd.FlagImpersonateGroup, group})
	}
	if k.AuthInfo.Token != "" {
		all = append(all, [2]string{clientcmd.FlagBearerToken, "TOKEN"})
	}
	var flags []string
	for _, flag := range all {
		if flag[1] != "" {
			flags = append(flags, "--"+flag[0], shell.Quote(flag[1]))
		}
	}
	if k.ClusterInfo.InsecureSkipTLSVerify {
		flags = append(flags, "--"+clientcmd.FlagInsecure)
	}
	return strings.Join(flags, " ")
}

// Config returns the client configuration of the cluster, and the cluster's name.
func (k Kubeconfig) Config() (*rest.Config, string, error) {
	file, err := k.load()
	if err != nil {
		return nil, "", err
	}
	return k.configOf(file)
}

func (k Kubeconfig) configOf(file *clientcmdapi.Config) (*rest.Config, string, error) {
	name, chosen, err := k.choose(file)
	if err != nil {
		return nil, "", err
	}
	look := k.lookHint()
	for _, c := range []struct {
		cluster *clientcmdapi.Cluster
		user    *clientcmdapi.AuthInfo
	}{{file.Clusters[chosen.Cluster], file.AuthInfos[chosen.AuthInfo]}, {&k.ClusterInfo, &k.AuthInfo}} {
		if err := checkFiles(c.cluster, c.user); err != nil {
			return nil, "", fmt.Errorf("kubeconfig %s: context %q: %w", k.Files, name, err)
		}
	}
	cfg, err := clientcmd.NewNonInteractiveClientConfig(*file, name, &k.ConfigOverrides, nil).ClientConfig()
	if err == nil {
		err = checkKeys(cfg)
	}
	if err != nil {
		return nil, "", fmt.Errorf("kubeconfig %s: context %q: %s (%s)", k.Files, name, oneLine(err), look)
	}
	cfg.QPS = -1 // a client-side rate limit would change the offered load
	return cfg, cmp.Or(chosen.Cluster, cfg.Host), nil
}

func (k Kubeconfig) lookHint() string {
	if len(k.paths()) > 1 {
		return fmt.Sprintf("`KUBECONFIG=%s kubectl config view` shows it", shell.Quote(k.Files))
	}
	return fmt.Sprintf("`kubectl --kubeconfig %s config view` shows it", shell.Quote(k.Files))
}

// paths returns the paths in Files. If the whole value of Files names an existing file, that file is the only path,
// because a file name may contain a colon.
func (k Kubeconfig) paths() []string {
	if _, err := os.Stat(k.Files); err == nil {
		return []string{k.Files}
	}
	return slices.DeleteFunc(filepath.SplitList(k.Files), func(path string) bool { return path == "" })
}

// load reads and merges the files as kubectl does. The first file that sets a value wins. load skips missing files if
// Files names several.
func (k Kubeconfig) load() (*clientcmdapi.Config, error) {
	if k.Files == InCluster {
		cfg, err := rest.InClusterConfig()
		if err != nil {
			return nil, fmt.Errorf("kubeconfig %s: %s (this value is only for a program in a pod with a service account)", InCluster, oneLine(err))
		}
		return ofPod(cfg), nil
	}
	paths := k.paths()
	var found []string
	for _, path := range paths {
		data, err := readText(path)
		if len(paths) > 1 && errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("kubeconfig %s: %w (--kubeconfig takes the file that kubectl uses)", path, err)
		}
		if _, err := clientcmd.Load(data); err != nil {
			return nil, fmt.Errorf("kubeconfig %s: %s (is it a kubeconfig?)", path, oneLine(err))
		}
		found = append(found, path)
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("kubeconfig %s: none of the files exists (--kubeconfig takes the files that kubectl uses)", k.Files)
	}
	file, err := (&clientcmd.ClientConfigLoadingRules{Precedence: found}).Load()
	if err != nil {
		return nil, fmt.Errorf("kubeconfig %s: %s (%s)", k.Files, oneLine(err), k.lookHint())
	}
	return file, nil
}

// ofPod converts a pod's in-cluster client configuration to a kubeconfig.
func ofPod(cfg *rest.Config) *clientcmdapi.Config {
	file := clientcmdapi.NewConfig()
	file.CurrentContext = InCluster
	file.Contexts[InCluster] = &clientcmdapi.Context{Cluster: InCluster, AuthInfo: InCluster}
	file.Clusters[InCluster] = &clientcmdapi.Cluster{Server: cfg.Host, CertificateAuthority: cfg.CAFile}
	file.AuthInfos[InCluster] = &clientcmdapi.AuthInfo{TokenFile: cfg.BearerTokenFile}
	return file
}

func (k Kubeconfig) choose(file *clientcmdapi.Config) (name string, chosen clientcmdapi.Context, err error) {
	fail := func(format string, args ...any) (string, clientcmdapi.Context, error) {
		return "", chosen, fmt.Errorf("kubeconfig %s: %s", k.Files, fmt.Sprintf(format, args...))
	}
	name = cmp.Or(k.CurrentContext, file.CurrentContext)
	names := strings.Join(slices.Sorted(maps.Keys(file.Contexts)), ", ")
	switch context := file.Contexts[name]; {
	case context != nil:
		chosen = *context
	case name == "" && (k.ClusterInfo.Server != "" || k.Context.Cluster != ""):
	case len(file.Contexts) == 0:
		return fail("it has no contexts (is it a kubeconfig?)")
	case name == "":
		return fail("no current-context (choose one with --context: %s)", names)
	default:
		return fail("no context %q (it has: %s)", name, names)
	}
	for flag, to := range map[string]*string{k.Context.Cluster: &chosen.Cluster, k.Context.AuthInfo: &chosen.AuthInfo} {
		if flag != "" {
			*to = flag
		}
	}
	const dangling = "context %q names the %s %q, which is not in the file (%s)"
	if file.Clusters[chosen.Cluster] == nil && (chosen.Cluster != "" || k.ClusterInfo.Server == "") {
		return fail(dangling, name, "cluster", chosen.Cluster, k.lookHint())
	}
	if file.AuthInfos[chosen.AuthInfo] == nil && chosen.AuthInfo != "" {
		return fail(dangling, name, "user", chosen.AuthInfo, k.lookHint())
	}
	return name, chosen, nil
}

// checkKeys returns an error for certificates that client-go would ignore, or reject without a helpful message.
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
			return fmt.Errorf("cannot use the client certificate: %w", err)
		}
	}
	return nil
}

// checkFiles returns an error for a file that client-go cannot read, would read forever, or would ignore because it is
// empty.
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
			if _, err := readText(name); err != nil {
				return fmt.Errorf("%s %s: %w (name a readable file)", field, name, err)
			}
		}
	}
	return nil
}

// readText reads a file and refuses an empty file.
func readText(path string) ([]byte, error) {
	data, err := userfile.Read(path, userfile.Text)
	if err == nil && len(bytes.TrimSpace(data)) == 0 {
		err = errors.New("the file is empty")
	}
	return data, err
}

func oneLine(err error) string { return strings.Join(strings.Fields(err.Error()), " ") }

// ownPlane reports whether the kubeconfig is the file that `controlplane up` wrote in the directory of its control
// plane. A copy elsewhere counts as the kubeconfig of a user's cluster.
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
