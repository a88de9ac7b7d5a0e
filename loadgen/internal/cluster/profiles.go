package cluster

import (
	"fmt"
	"net/http"
	"strings"

	"k8s.io/client-go/rest"

	"github.com/stormglass/stormglass/controlplane/control"
	"github.com/stormglass/stormglass/loadgen/internal/profile"
)

// ProfileSources returns the processes that serve profiles next to their metrics: all components of a bundled plane, as the
// plane's administrator; the API server of a user's cluster, as the user; and the targets of --targets. Only their answers
// show whether they permit it.
func (t *Target) ProfileSources() ([]profile.Source, error) {
	targets := t.Scrape
	if len(targets) == 0 { // the user's Prometheus scrapes
		targets = []control.ScrapeTarget{apiServerScrape(t.Admin)}
	}
	var all []profile.Source
	for _, s := range targets {
		client, err := t.profileClient(s)
		if err != nil {
			return nil, fmt.Errorf("profiles of %s: %w", s.Instance, err)
		}
		all = append(all, profile.Remote(s.Instance, s.Job, strings.TrimSuffix(s.URL, "/metrics")+"/debug/pprof", client))
	}
	return all, nil
}

// profileClient returns a client with the identity that may profile a component: etcd grants rights only by its
// certificates, and the scraper may not profile Kubernetes.
func (t *Target) profileClient(s control.ScrapeTarget) (*http.Client, error) {
	cfg := &rest.Config{Host: s.URL, BearerTokenFile: s.TokenFile, TLSClientConfig: rest.TLSClientConfig{
		CAFile: s.CAFile, CertFile: s.CertFile, KeyFile: s.KeyFile, ServerName: s.ServerName, Insecure: s.InsecureSkipVerify,
	}}
	administered := t.Cluster.Bundled && s.Job != control.KindEtcd
	if administered || s.URL == metricsURL(t.Admin) {
		cfg = rest.CopyConfig(t.Admin)
	}
	if administered { // the component's server is not the kubeconfig's server
		cfg.CAFile, cfg.CAData = s.CAFile, nil
	}
	return rest.HTTPClientFor(cfg)
}
