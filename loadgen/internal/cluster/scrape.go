package cluster

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/stormglass/stormglass/controlplane/control"
	"github.com/stormglass/stormglass/internal/strictyaml"
	"github.com/stormglass/stormglass/internal/userfile"
	"github.com/stormglass/stormglass/loadgen/internal/apiclient"
)

const apiServerJob = "kube-apiserver"

func metricsURL(cfg *rest.Config) string { return strings.TrimSuffix(cfg.Host, "/") + "/metrics" }

// apiServerScrape returns the scrape target of the API server, which is the only control plane component that a
// kubeconfig gives access to. Setup adds the credentials.
func apiServerScrape(cfg *rest.Config) control.ScrapeTarget {
	s := control.ScrapeTarget{
		Job: apiServerJob, Instance: "kube-apiserver", URL: metricsURL(cfg),
		ServerName: cfg.ServerName, InsecureSkipVerify: cfg.Insecure,
	}
	if via, err := apiclient.Proxy(cfg); err == nil && via != nil { // if the proxy is invalid, the run has failed earlier
		s.ProxyURL = via.String()
	}
	return s
}

// apiServers returns a warning if several API servers share one address, because each scrape may then reach a different
// one. It returns nil if the number of API servers is unknown.
func (t *Target) apiServers(ctx context.Context, client kubernetes.Interface) []string {
	slices, err := client.DiscoveryV1().EndpointSlices("default").
		List(ctx, metav1.ListOptions{LabelSelector: "kubernetes.io/service-name=kubernetes"})
	if err != nil {
		return nil
	}
	n := 0
	for _, s := range slices.Items {
		for _, e := range s.Endpoints {
			n += len(e.Addresses)
		}
	}
	if n < 2 {
		return nil
	}
	return []string{fmt.Sprintf("%d API servers share the address %s, so each scrape may reach a different API server and rates of their counters are wrong; list each API server in a --targets file", n, t.Cluster.Server)}
}

type targetsFile struct {
	Targets []control.ScrapeTarget `yaml:"targets"`
}

// AddTargets adds the scrape targets in a file that ReadTargets reads. Targets of job kube-apiserver replace the API server of
// the kubeconfig.
func (t *Target) AddTargets(path string) error {
	added, err := ReadTargets(path)
	if err != nil {
		return err
	}
	if slices.ContainsFunc(added, func(s control.ScrapeTarget) bool { return s.Job == apiServerJob }) {
		t.Scrape, t.Cluster.Targets = nil, nil
	}
	for _, s := range added {
		t.offer(s)
	}
	return nil
}

// ReadTargets reads scrape targets from a YAML file:
//
//	targets:
//	  - job: etcd                # becomes the label; gates know kube-apiserver,
//	    instance: etcd-1         # kube-scheduler, kube-controller-manager, etcd
//	    url: https://10.0.0.1:2379/metrics
//	    caFile: ca.crt           # verifies the server
//	    certFile: client.crt     # credentials: a certificate and its key,
//	    keyFile: client.key
//	    tokenFile: token         # or a bearer token
//	    proxyURL: http://p:3128  # an HTTP or SOCKS proxy on the way to it
//
// Every error names file, line and field.
func ReadTargets(path string) (read []control.ScrapeTarget, err error) {
	data, err := userfile.Read(path, userfile.Text)
	if err != nil {
		return nil, fmt.Errorf("--targets %s: %w (name a file of scrape targets)", path, err)
	}
	doc, err := strictyaml.Parse(path, data)
	if err != nil {
		return nil, err
	}
	var file targetsFile
	if err := doc.Decode(&file); err != nil {
		return nil, err
	}
	if len(file.Targets) == 0 {
		return nil, doc.Errorf("targets", "write - {job: etcd, url: https://HOST:2379/metrics}", "no targets")
	}
	seen := map[string]bool{}
	for i, s := range file.Targets {
		if err := checkTarget(doc, fmt.Sprintf("targets[%d]", i), &s); err != nil {
			return nil, err
		}
		if seen[s.Instance] {
			return nil, doc.Errorf(fmt.Sprintf("targets[%d].instance", i), "give each target a unique instance", "%q appears twice", s.Instance)
		}
		seen[s.Instance] = true
		read = append(read, s)
	}
	return read, nil
}

// checkTarget returns an error for a target that cannot be scraped. It sets the instance of a target that has none.
func checkTarget(doc *strictyaml.Document, path string, s *control.ScrapeTarget) error {
	if s.Job == "" {
		return doc.Errorf(path+".job", "for example etcd or kube-scheduler", "is missing")
	}
	u, err := url.Parse(s.URL)
	if err != nil || u.Host == "" || (u.Scheme != "https" && u.Scheme != "http") {
		return doc.Errorf(path+".url", "write https://HOST:PORT/metrics", "%q is not an HTTP or HTTPS URL", s.URL)
	}
	s.Instance = cmp.Or(s.Instance, u.Host)
	if via, err := url.Parse(s.ProxyURL); s.ProxyURL != "" && (err != nil || via.Host == "") {
		return doc.Errorf(path+".proxyURL", "write http://HOST:PORT or socks5://HOST:PORT", "this is not the URL of a proxy")
	}
	if (s.CertFile == "") != (s.KeyFile == "") {
		return doc.Errorf(path, "set both certFile and keyFile, or neither", "certFile and keyFile require each other")
	}
	for field, name := range map[string]string{"caFile": s.CAFile, "certFile": s.CertFile, "keyFile": s.KeyFile, "tokenFile": s.TokenFile} {
		if name == "" {
			continue
		}
		if err := userfile.Check(name, userfile.Text); err != nil {
			return doc.Errorf(path+"."+field, "a relative path is relative to the working directory of loadgen", "cannot read %s: %s", name, oneLine(err))
		}
	}
	return nil
}
