package scrapeconfig

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/prometheus/common/promslog"
	"github.com/prometheus/prometheus/config"
	"github.com/prometheus/prometheus/discovery/file"

	"github.com/stormglass/stormglass/controlplane/control"
)

// plane creates the directory of a control plane with keys, and returns it and the scrape targets.
func plane(t *testing.T) (dir string, targets []control.ScrapeTarget) {
	t.Helper()
	dir = t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "pki"), 0o700); err != nil {
		t.Fatal(err)
	}
	key := func(name string) string {
		path := filepath.Join(dir, "pki", name)
		if err := os.WriteFile(path, []byte("not read here"), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	etcd := control.ScrapeTarget{Job: "etcd", CAFile: key("etcd-ca.crt"), CertFile: key("etcd-scrape.crt"), KeyFile: key("etcd-scrape.key")}
	zero, one := etcd, etcd
	zero.Instance, zero.URL = "etcd-0", "https://127.0.0.1:2379/metrics"
	one.Instance, one.URL = "etcd-1", "https://127.0.0.1:2479/metrics"
	return dir, []control.ScrapeTarget{zero, one, {
		Job: "kube-apiserver", Instance: "kube-apiserver-0", URL: "https://127.0.0.1:6443/metrics",
		CAFile: key("server-ca.crt"), TokenFile: "/elsewhere/token", ServerName: "kubernetes",
	}, {
		Job: "kube-apiserver", Instance: "plain", URL: "http://127.0.0.1:8080/metrics?all=1",
	}}
}

// load reads the configuration as a Prometheus server does.
func load(t *testing.T, dir string) (*config.Config, map[string]*config.ScrapeConfig) {
	t.Helper()
	c, err := config.LoadFile(filepath.Join(dir, ServerFile), false, promslog.NewNopLogger())
	if err != nil {
		t.Fatal(err)
	}
	all, err := c.GetScrapeConfigs()
	if err != nil {
		t.Fatal(err)
	}
	byName := map[string]*config.ScrapeConfig{}
	for _, s := range all {
		byName[s.JobName] = s
	}
	return c, byName
}

// TestPrometheusLoads checks that a Prometheus server finds every key, uses the right scheme and path, and sets the
// labels that the rules expect.
func TestPrometheusLoads(t *testing.T) {
	base, targets := plane(t)
	dir, err := Write(base, targets, Options{Rules: fstest.MapFS{"etcd.yaml": {Data: []byte("groups: []\n")}}, Owner: "a test"})
	if err != nil {
		t.Fatal(err)
	}
	server, jobs := load(t, dir)
	if want := filepath.Join(dir, "rules", "*.yaml"); len(server.RuleFiles) != 1 || server.RuleFiles[0] != want {
		t.Errorf("rule files %v, want %s", server.RuleFiles, want)
	}
	if len(jobs) != 3 {
		t.Fatalf("%d scrape configurations, want one for etcd and two for the API servers, which have different identities", len(jobs))
	}
	etcd := jobs["etcd"]
	for _, path := range []string{etcd.HTTPClientConfig.TLSConfig.CAFile, etcd.HTTPClientConfig.TLSConfig.CertFile, etcd.HTTPClientConfig.TLSConfig.KeyFile} {
		if _, err := os.Stat(path); err != nil {
			t.Errorf("Prometheus would look for a key at %s: %v", path, err)
		}
	}
	if api := jobs["kube-apiserver"].HTTPClientConfig; api.TLSConfig.ServerName != "kubernetes" || api.Authorization.CredentialsFile != "/elsewhere/token" {
		t.Errorf("client configuration of job kube-apiserver = %+v", api)
	}
	if plain := jobs["kube-apiserver-2"]; plain.Scheme != "http" || plain.Params.Get("all") != "1" {
		t.Errorf("scheme and parameters of the plain API server = %s, %v", plain.Scheme, plain.Params)
	}
	sd := etcd.ServiceDiscoveryConfigs[0].(*file.SDConfig)
	text, err := os.ReadFile(sd.Files[0])
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"127.0.0.1:2379"`, `"127.0.0.1:2479"`, `"instance": "etcd-1"`, `"job": "etcd"`} {
		if !strings.Contains(string(text), want) {
			t.Errorf("%s is missing in %s", want, text)
		}
	}
}

// TestMoved checks that the paths of keys stay valid if the plane's directory is mounted elsewhere.
func TestMoved(t *testing.T) {
	base, targets := plane(t)
	if _, err := Write(base, targets, Options{}); err != nil {
		t.Fatal(err)
	}
	moved := filepath.Join(t.TempDir(), "mounted")
	if err := os.Rename(base, moved); err != nil {
		t.Fatal(err)
	}
	_, jobs := load(t, filepath.Join(moved, Dir))
	if got, want := jobs["etcd"].HTTPClientConfig.TLSConfig.CAFile, filepath.Join(moved, "pki", "etcd-ca.crt"); filepath.Clean(got) != want {
		t.Errorf("path of the CA after the move = %s, want %s", got, want)
	}
}

// TestWrittenAgain checks that Write removes files that an earlier call wrote and this call does not.
func TestWrittenAgain(t *testing.T) {
	base, targets := plane(t)
	rules := fstest.MapFS{"old.yaml": {Data: []byte("groups: []\n")}}
	if _, err := Write(base, targets, Options{Rules: rules}); err != nil {
		t.Fatal(err)
	}
	dir, err := Write(base, targets[:2], Options{})
	if err != nil {
		t.Fatal(err)
	}
	server, jobs := load(t, dir)
	if len(jobs) != 1 || jobs["etcd"] == nil || len(server.RuleFiles) != 0 {
		t.Errorf("jobs = %v, rules = %v", jobs, server.RuleFiles)
	}
	left, err := filepath.Glob(filepath.Join(dir, "*", "*"))
	if err != nil || len(left) != 1 || filepath.Base(left[0]) != "etcd.json" {
		t.Errorf("left are %v (%v), want the targets of etcd alone", left, err)
	}
}

// TestNotAnURL checks that the error for an invalid URL names the target.
func TestNotAnURL(t *testing.T) {
	_, err := Write(t.TempDir(), []control.ScrapeTarget{{Job: "etcd", Instance: "etcd-0", URL: "127.0.0.1"}}, Options{})
	if err == nil || !strings.Contains(err.Error(), "etcd-0") || !strings.Contains(err.Error(), "127.0.0.1") {
		t.Errorf("got %v", err)
	}
}
