package cluster

import (
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/stormglass/stormglass/loadgen/internal/apiclient"
	"github.com/stormglass/stormglass/loadgen/internal/scratch"
)

// settings are the settings of the cluster that a kubeconfig selects.
type settings struct {
	name, server, token, as string
}

func TestFlagsAndFilesNameTheCluster(t *testing.T) {
	s := newStub(t)
	staging := s.kubeconfig(t, goodToken)
	ca := file(t, "ca.crt", string(authority(s.Server)))
	clusters := file(t, "clusters", "apiVersion: v1\nkind: Config\nclusters: [{name: prod, cluster: {server: 'https://prod'}}, {name: staging, cluster: {server: 'https://later'}}]\n")
	contexts := file(t, "contexts", "apiVersion: v1\nkind: Config\ncontexts: [{name: p, context: {cluster: prod, user: alice}}]\n")
	for name, c := range map[string]struct {
		k    Kubeconfig
		want settings
	}{
		"the current context": {Kubeconfig{Files: staging}, settings{name: "staging", server: s.URL, token: goodToken}},
		"several files: the first wins, and one is absent": {
			Kubeconfig{Files: strings.Join([]string{staging, clusters, filepath.Join(t.TempDir(), "absent"), contexts}, ":")},
			settings{name: "staging", server: s.URL, token: goodToken},
		},
		"a context of one file with cluster and user of others": {
			Kubeconfig{Files: contexts + ":" + clusters + ":" + staging, ConfigOverrides: clientcmd.ConfigOverrides{CurrentContext: "p"}},
			settings{name: "prod", server: "https://prod", token: goodToken},
		},
		"another cluster than the context's": {
			Kubeconfig{Files: staging + ":" + clusters, ConfigOverrides: clientcmd.ConfigOverrides{Context: clientcmdapi.Context{Cluster: "prod"}}},
			settings{name: "prod", server: "https://prod", token: goodToken},
		},
		"token and server instead of the file's": {
			Kubeconfig{Files: clusters, ConfigOverrides: clientcmd.ConfigOverrides{
				ClusterInfo: clientcmdapi.Cluster{Server: s.URL, CertificateAuthority: ca}, AuthInfo: clientcmdapi.AuthInfo{Token: "mine"},
			}},
			settings{name: s.URL, server: s.URL, token: "mine"},
		},
		"impersonation": {
			Kubeconfig{Files: staging, ConfigOverrides: clientcmd.ConfigOverrides{AuthInfo: clientcmdapi.AuthInfo{Impersonate: "bob"}}},
			settings{name: "staging", server: s.URL, token: goodToken, as: "bob"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			cfg, cluster, err := c.k.Config()
			if err != nil {
				t.Fatal(err)
			}
			if got := (settings{cluster, cfg.Host, cfg.BearerToken, cfg.Impersonate.UserName}); got != c.want {
				t.Errorf("%+v, want %+v", got, c.want)
			}
		})
	}
}

func TestBrokenFlagsAndFilesHaveAHint(t *testing.T) {
	s := newStub(t)
	staging := s.kubeconfig(t, goodToken)
	dir := t.TempDir()
	for want, k := range map[string]Kubeconfig{
		"none of the files exists (--kubeconfig takes":                     {Files: filepath.Join(dir, "a") + ":" + filepath.Join(dir, "b")},
		"(is it a kubeconfig?)":                                            {Files: staging + ":" + file(t, "k", "clusters: [")},
		"is a directory":                                                   {Files: staging + ":" + dir},
		`context "broken" names the cluster "nowhere", which is not in`:    {Files: staging, ConfigOverrides: clientcmd.ConfigOverrides{CurrentContext: "broken"}},
		`context "here" names the user "carol", which is not in the`:       {Files: staging, ConfigOverrides: clientcmd.ConfigOverrides{Context: clientcmdapi.Context{AuthInfo: "carol"}}},
		"certificate-authority none: no such file or directory (name a":    {Files: staging, ConfigOverrides: clientcmd.ConfigOverrides{ClusterInfo: clientcmdapi.Cluster{CertificateAuthority: "none"}}},
		"kubeconfig in-cluster: unable to load in-cluster configuration, ": {Files: InCluster},
	} {
		_, _, err := k.Config()
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%v, want one line with %q", err, want)
		}
	}
}

// All requests of the user's identity, even by the HTTP/2 client, impersonate the user that the flags name.
// Requests of the load do not.
func TestImpersonationReachesTheServer(t *testing.T) {
	s := newStub(t)
	k := Kubeconfig{Files: s.kubeconfig(t, goodToken), ConfigOverrides: clientcmd.ConfigOverrides{
		AuthInfo: clientcmdapi.AuthInfo{Impersonate: "bob", ImpersonateUID: "7", ImpersonateGroups: []string{"team", "ops"}},
	}}
	target, err := FromKubeconfig(t.Context(), k, "r1", parsed(t, "nodes: {count: 1}\n"+quiet), func(string) {})
	if err != nil {
		t.Fatal(err)
	}
	endpoint, err := apiclient.New(target.Admin, &apiclient.Roots{})
	if err != nil {
		t.Fatal(err)
	}
	ours, err := endpoint.Headers()
	if err != nil {
		t.Fatal(err)
	}
	if len(s.headers) < 3 {
		t.Errorf("%d requests", len(s.headers))
	}
	for _, h := range append(s.headers, ours) {
		got := []string{h.Get("Impersonate-User"), h.Get("Impersonate-Uid"), strings.Join(h["Impersonate-Group"], "+")}
		if strings.Join(got, " ") != "bob 7 team+ops" {
			t.Errorf("impersonation headers %v, want user bob, UID 7 and groups team and ops: %v", got, h)
		}
	}
	if !strings.Contains(target.Plan().String(), `removes objects as user "bob" (--as)`) {
		t.Error("the plan does not name the impersonated user")
	}
	target.identity = &identity{tokenFile: "token", scratch: &scratch.Dir{Path: t.TempDir()}}
	if err := target.useIdentity(); err != nil {
		t.Fatal(err)
	}
	if as := target.Load.Impersonate.UserName; as != "" {
		t.Errorf("the load impersonates %s, want no user", as)
	}
}

// In a pod, flags take precedence over the pod's ServiceAccount, which Config converts to a kubeconfig.
func TestFlagsOverridePodConfiguration(t *testing.T) {
	s := newStub(t)
	pod := &rest.Config{
		Host: s.URL, BearerTokenFile: file(t, "token", goodToken),
		TLSClientConfig: rest.TLSClientConfig{CAFile: file(t, "ca.crt", string(authority(s.Server)))},
	}
	for as, k := range map[string]Kubeconfig{
		"":    {Files: InCluster},
		"bob": {Files: InCluster, ConfigOverrides: clientcmd.ConfigOverrides{AuthInfo: clientcmdapi.AuthInfo{Impersonate: "bob"}}},
	} {
		cfg, name, err := k.configOf(ofPod(pod))
		if err != nil {
			t.Fatal(err)
		}
		if name != InCluster || cfg.BearerTokenFile != pod.BearerTokenFile || cfg.CAFile != pod.CAFile {
			t.Errorf("%s: %+v", name, cfg)
		}
		client, err := rest.HTTPClientFor(cfg)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := client.Get(s.URL + "/version")
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if got := s.headers[len(s.headers)-1]; resp.StatusCode != http.StatusOK || got.Get("Impersonate-User") != as {
			t.Errorf("status %d, headers %v", resp.StatusCode, got)
		}
	}
}

func TestCurrentClusterMatchesKubectl(t *testing.T) {
	t.Setenv("KUBECONFIG", "a:b")
	if files, err := CurrentKubeconfig(); files != "a:b" || err != nil {
		t.Errorf("%q, %v", files, err)
	}
}

// The cleanup command that a run prints selects the same cluster, and does not contain the token.
func TestFlagsNameTheSameCluster(t *testing.T) {
	k := Kubeconfig{Files: "a b", ConfigOverrides: clientcmd.ConfigOverrides{
		CurrentContext: "staging", ClusterInfo: clientcmdapi.Cluster{Server: "https://h", InsecureSkipTLSVerify: true},
		AuthInfo: clientcmdapi.AuthInfo{Token: "secret", Impersonate: "bob", ImpersonateGroups: []string{"x", "y"}},
	}}
	want := "--kubeconfig 'a b' --context staging --server https://h --as bob --as-group x --as-group y --token TOKEN --insecure-skip-tls-verify"
	if got := k.Flags(); got != want {
		t.Errorf("\n got %s\nwant %s", got, want)
	}
}
