// Package promimport records metrics from a Prometheus server that already scrapes the cluster, so that a run need not
// scrape the cluster a second time. At the end of a run, it copies the samples into the run's archive. Samples that
// could not be copied count as missing data.
//
// # Boundaries
//
// At a phase boundary, the run pauses the phase's load until the Prometheus server has scraped every target once more.
// The Recorder copies these scrapes a second time with the timestamp of the boundary: all targets then have samples at
// the same time, as in package scrape. Requests that other clients send between a scrape and the boundary therefore
// count as sent after the boundary.
//
// # Reconstruction
//
// A query does not show when a target was scraped. The Recorder takes these times from the samples of the metric up. A
// series that is missing from a scrape gets a staleness marker. A counter that appears for the first time gets the
// value 0 at the previous scrape if the process was the same then. The metric up is 0 in gaps of more than two and a
// half scrape intervals, and where samples could not be copied.
//
// The Recorder measures the difference between the two clocks once, and shifts all times by it.
package promimport

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/client_golang/api"
	v1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/config"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"go.yaml.in/yaml/v3"

	"github.com/stormglass/stormglass/controlplane/control"
	"github.com/stormglass/stormglass/internal/httplimit"
	"github.com/stormglass/stormglass/internal/userfile"
	"github.com/stormglass/stormglass/loadgen/internal/archive"
)

// Config names a Prometheus server and selects the series of the cluster in it.
type Config struct {
	// URL is the base URL of the server's API, such as http://127.0.0.1:9090 or https://mimir/prometheus. Any server with
	// the query API of Prometheus works.
	URL string
	// HTTPConfig is a file with credentials and TLS settings, in the format of promtool's --http.config.file. Empty
	// means no credentials.
	HTTPConfig string
	// Jobs maps the job names of this program to values of the label job in the Prometheus server, such as
	// {"kube-apiserver": "apiserver"}. The default is the name in KubePrometheusStack, or this program's job name if the
	// Prometheus server has only that. An empty value excludes the job.
	Jobs map[string]string
	// Ours reports whether the Prometheus server uses this program's job names, as it does with `loadgen observe` and
	// `loadgen run --observe`.
	Ours bool
	// Match is a list of PromQL matchers that select the series of the cluster, such as `cluster="prod",
	// prometheus_replica="a"`. Empty means that all series belong to the cluster.
	Match string
	// Now returns the current time by this machine's clock. Nil means time.Now.
	Now func() time.Time
}

// KubePrometheusStack returns the value of the label job for each component in the Helm chart kube-prometheus-stack (the
// jobLabel of its ServiceMonitors, templates/exporters).
func KubePrometheusStack() map[string]string {
	return map[string]string{
		control.KindAPIServer:         "apiserver",
		control.KindEtcd:              "kube-etcd",
		control.KindScheduler:         "kube-scheduler",
		control.KindControllerManager: "kube-controller-manager",
	}
}

// Source is a Prometheus server to record from.
type Source struct {
	api   v1.API
	url   string            // URL of the server without the password, for messages
	jobs  map[string]string // Stormglass's job names, by job name in the Prometheus server
	named map[string]string // names that the user gave: job names in the Prometheus server, by Stormglass's job name
	ours  bool              // whether the Prometheus server uses Stormglass's job names
	match []*labels.Matcher
	clock func() time.Time // this machine's clock
	// ingestion is the maximum time from a scrape until queries return its samples. It is long with remote write.
	ingestion time.Duration

	targets []Target
	ahead   int64 // how far the Prometheus server's clock is ahead of this machine's clock, in ms
}

// New returns the Source for a Config. It sends no request. Every error is a mistake of the user in the Config.
func New(c Config) (*Source, error) {
	u, err := url.Parse(c.URL)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		shown := strconv.Quote(c.URL)
		if strings.Contains(c.URL, "@") { // the URL may contain a password
			shown = "the given text"
		}
		return nil, fmt.Errorf("%s is not the URL of a Prometheus server (write http://HOST:9090)", shown)
	}
	s := &Source{url: u.Redacted(), clock: c.Now, ingestion: 30 * time.Second}
	if s.clock == nil {
		s.clock = time.Now
	}
	s.ours, s.named = c.Ours, c.Jobs
	if s.jobs, err = theirJobs(c.Jobs); err != nil {
		return nil, err
	}
	if s.match, err = parseMatch(c.Match); err != nil {
		return nil, err
	}
	transport := http.DefaultTransport
	if c.HTTPConfig != "" {
		if transport, err = Transport(c.HTTPConfig); err != nil {
			return nil, err
		}
	}
	client, err := api.NewClient(api.Config{Address: c.URL, RoundTripper: httplimit.Queries(transport)})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", s.url, err)
	}
	s.api = v1.NewAPI(client)
	return s, nil
}

// Transport returns a RoundTripper with the credentials and TLS settings in a file, which has the format of promtool's
// --http.config.file. Errors have one line.
func Transport(file string) (http.RoundTripper, error) {
	h, err := httpConfig(file)
	var transport http.RoundTripper
	if err == nil {
		transport, err = config.NewRoundTripperFromConfig(*h, "stormglass", config.WithUserAgent("stormglass"))
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %s (use the format of promtool's --http.config.file)", file, oneLine(err))
	}
	return transport, nil
}

// httpConfig reads a file in the format of promtool's --http.config.file. It also checks the files that this file
// names, relative to its directory, because Prometheus' client would read a device forever.
func httpConfig(file string) (*config.HTTPClientConfig, error) {
	data, err := userfile.Read(file, userfile.Text)
	if err != nil {
		return nil, err
	}
	c, err := config.LoadHTTPConfig(string(data))
	if err != nil {
		return nil, err
	}
	dir := filepath.Dir(file)
	c.SetDirectory(dir)
	var fields yaml.Node
	if err := yaml.Unmarshal(data, &fields); err != nil {
		return nil, err
	}
	return c, checkNamed(&fields, dir)
}

// checkNamed checks the files that are named by fields NAME_file and, for headers, by lists called files.
func checkNamed(n *yaml.Node, dir string) error {
	for i, child := range n.Content {
		if n.Kind == yaml.MappingNode && i%2 == 1 {
			var names []*yaml.Node
			switch field := n.Content[i-1].Value; {
			case strings.HasSuffix(field, "_file"):
				names = []*yaml.Node{child}
			case field == "files":
				names = child.Content
			}
			for _, name := range names {
				if name.Value == "" {
					continue
				}
				path := config.JoinDir(dir, name.Value)
				if err := userfile.Check(path, userfile.Text); err != nil {
					return fmt.Errorf("line %d: %s: %s: %w", name.Line, n.Content[i-1].Value, path, err)
				}
			}
		}
		if err := checkNamed(child, dir); err != nil {
			return err
		}
	}
	return nil
}

// theirJobs maps job names in the Prometheus server to Stormglass's job names. It uses the names in named, and the
// defaults for other jobs.
func theirJobs(named map[string]string) (map[string]string, error) {
	jobs := KubePrometheusStack()
	for ours, theirs := range named {
		if _, known := jobs[ours]; !known {
			return nil, fmt.Errorf("job %q is not a component (use one of %s)", ours, strings.Join(slices.Sorted(maps.Keys(jobs)), ", "))
		}
		jobs[ours] = theirs
	}
	all := map[string]string{}
	for _, ours := range slices.Sorted(maps.Keys(jobs)) {
		theirs := jobs[ours]
		if theirs == "" {
			continue
		}
		if other := all[theirs]; other != "" {
			return nil, fmt.Errorf("job %q is given as the job of %s and of %s (relabel one of them, or leave one out: %s=)", theirs, other, ours, ours)
		}
		all[theirs] = ours
	}
	if len(all) == 0 {
		return nil, errors.New("every job is left out, so nothing would be read")
	}
	return all, nil
}

func parseMatch(text string) ([]*labels.Matcher, error) {
	if strings.TrimSpace(text) == "" {
		return nil, nil
	}
	matchers, err := archive.NewParser().ParseMetricSelector("{" + text + "}")
	if err != nil {
		return nil, fmt.Errorf("%q is not a list of matchers: %s (write them as in PromQL: cluster=\"prod\")", text, oneLine(err))
	}
	for _, m := range matchers {
		if m.Name == model.MetricNameLabel || m.Name == "job" {
			return nil, fmt.Errorf("%q matches the label %s, which the import already uses (use a label that distinguishes the cluster)", text, m.Name)
		}
	}
	return matchers, nil
}

// selector returns a PromQL selector with the matchers that select the cluster and the matchers in more.
func (s *Source) selector(more ...*labels.Matcher) string {
	var parts []string
	for _, m := range append(more, s.match...) {
		parts = append(parts, m.String())
	}
	return "{" + strings.Join(parts, ",") + "}"
}

func oneLine(err error) string { return strings.Join(strings.Fields(err.Error()), " ") }
