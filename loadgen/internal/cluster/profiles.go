package cluster

import (
	"fmt"
	"net/http"
	"strings"

	"k8s.io/client-go/rest"

	"github.com/stormglass/stormglass/controlplane/control"
	"github.com/stormglass/stormglass/loadgen/internal/profile"
)

// ProfileSources returns the processes that serve profiles beside their metrics: of a bundled plane all components, asked
// with the plane's administrator; of a user's cluster the API server, asked as the user, and what --targets names. Whether
// they permit it shows when they are asked.
func (t *Target) ProfileSources() ([]profile.Source, error) {
	targets := t.Scrape
	if len(targets) == 0 { // scraped by a Prometheus of the user's
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

// profileClient asks a component with the identity that may profile it: etcd knows no rights but its certificates,
// and the scraper's may not profile Kubernetes.
func (t *Target) profileClient(s control.ScrapeTarget) (*http.Client, error) {
	cfg := &rest.Config{Host: s.URL, BearerTokenFile: s.TokenFile, TLSClientConfig: rest.TLSClientConfig{
		CAFile: s.CAFile, CertFile: s.CertFile, KeyFile: s.KeyFile, ServerName: s.ServerName, Insecure: s.InsecureSkipVerify,
	}}
	administered := t.Cluster.Bundled && s.Job != control.KindEtcd
	if administered || s.URL == metricsURL(t.Admin) {
		cfg = rest.CopyConfig(t.Admin)
	}
	if administered { // its server is another one than the kubeconfig's
		cfg.CAFile, cfg.CAData = s.CAFile, nil
	}
	return rest.HTTPClientFor(cfg)
}
