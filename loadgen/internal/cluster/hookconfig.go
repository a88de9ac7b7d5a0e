package cluster

import (
	"errors"
	"path/filepath"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/stormglass/stormglass/loadgen/internal/apiclient"
	"github.com/stormglass/stormglass/loadgen/internal/scratch"
)

// WriteKubeconfig writes a kubeconfig for the hook commands of the scenario, with the identity of t.Admin. The function
// `remove` deletes the file. If the process is killed, scratch.Sweep removes the file in a later run.
func (t *Target) WriteKubeconfig() (file string, remove func() error, err error) {
	temp, err := scratch.New(scratch.Token)
	if err != nil {
		return "", nil, err
	}
	file = filepath.Join(temp.Path, "kubeconfig")
	if err := clientcmd.WriteToFile(*hookKubeconfig(t.Admin, t.Namespace), file); err != nil {
		return "", nil, errors.Join(err, temp.Remove())
	}
	return file, temp.Remove, nil
}

// hookKubeconfig converts a client configuration to a kubeconfig with one context.
func hookKubeconfig(cfg *rest.Config, namespace string) *clientcmdapi.Config {
	const name = "stormglass"
	all := clientcmdapi.NewConfig()
	cluster, user, chosen := clientcmdapi.NewCluster(), clientcmdapi.NewAuthInfo(), clientcmdapi.NewContext()
	cluster.Server = cfg.Host
	cluster.TLSServerName, cluster.InsecureSkipTLSVerify = cfg.ServerName, cfg.Insecure
	cluster.CertificateAuthority, cluster.CertificateAuthorityData = cfg.CAFile, cfg.CAData
	cluster.DisableCompression = cfg.DisableCompression
	if cfg.Proxy != nil { // commands inherit the environment's proxy
		if via, err := apiclient.Proxy(cfg); err == nil && via != nil {
			cluster.ProxyURL = via.String()
		}
	}
	user.ClientCertificate, user.ClientCertificateData = cfg.CertFile, cfg.CertData
	user.ClientKey, user.ClientKeyData = cfg.KeyFile, cfg.KeyData
	user.Token, user.TokenFile = cfg.BearerToken, cfg.BearerTokenFile
	user.Username, user.Password = cfg.Username, cfg.Password
	user.Impersonate, user.ImpersonateUID = cfg.Impersonate.UserName, cfg.Impersonate.UID
	user.ImpersonateGroups, user.ImpersonateUserExtra = cfg.Impersonate.Groups, cfg.Impersonate.Extra
	user.Exec, user.AuthProvider = cfg.ExecProvider, cfg.AuthProvider
	chosen.Cluster, chosen.AuthInfo, chosen.Namespace = name, name, namespace
	all.Clusters[name], all.AuthInfos[name], all.Contexts[name], all.CurrentContext = cluster, user, chosen, name
	return all
}
