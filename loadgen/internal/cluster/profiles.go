package cluster

import (
	"fmt"
	"net/http"
	"strings"

	"k8s.io/client-go/rest"

	"github.com/stormglass/stormglass/controlplane/control"
	"github.com/stormglass/stormglass/loadgen/internal/profile"
)

// ProfileSources returns the processes that can provide profiles. On a bundled control plane these are all components,
// with the identity of the plane's administrator. On a user's cluster these are the API server, with the user's
// identity, and the targets of --targets. Whether a process permits profiling is known only after the first request for
// a profile.
func (t *Target) ProfileSources() ([]profile.Source, error) {
	targets := t.Scrape
	if len(targets) == 0 { // the user's Prometheus server scrapes, not the run
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

// profileClient returns an HTTP client with the identity to profile a component. On a bundled control plane, this is
// the administrator, because the identity that scrapes metrics may not profile Kubernetes components. For etcd, it is
// the identity that scrapes metrics, because etcd accepts only certificates that its own CA signed.
func (t *Target) profileClient(s control.ScrapeTarget) (*http.Client, error) {
	cfg := &rest.Config{Host: s.URL, BearerTokenFile: s.TokenFile, TLSClientConfig: rest.TLSClientConfig{
		CAFile: s.CAFile, CertFile: s.CertFile, KeyFile: s.KeyFile, ServerName: s.ServerName, Insecure: s.InsecureSkipVerify,
	}}
	administered := t.Cluster.Bundled && s.Job != control.KindEtcd
	if administered || s.URL == metricsURL(t.Admin) {
		cfg = rest.CopyConfig(t.Admin)
	}
	if administered { // this component's certificate may be from another CA than the kubeconfig's
		cfg.CAFile, cfg.CAData = s.CAFile, nil
	}
	return rest.HTTPClientFor(cfg)
}
