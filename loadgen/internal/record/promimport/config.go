// Package promimport records from a Prometheus that scrapes the cluster already, instead
// of scraping it a second time. Samples are copied into the run's archive: judging
// queries no network, and what was not copied is no data.
//
// # Boundaries
//
// At a phase's boundary the run waits, without the phase's load, until every target was
// scraped once more. Those scrapes are copied a second time under the boundary's own
// time, so that all targets have samples of one moment, as in package record. What other
// clients do between a scrape and that moment counts as after it.
//
// # Reconstruction
//
// A query gives samples without what a scrape knows besides; the times of up tell it. A
// series that is missing from a scrape gets a staleness marker. A counter that first
// appears gets a zero at the scrape before, if that was of the same process. up is 0
// where no scrape came for two and a half intervals or a part of the copy failed.
//
// Times are moved by the difference of the two clocks, which is asked for once.
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
	"github.com/stormglass/stormglass/internal/userfile"
	"github.com/stormglass/stormglass/loadgen/internal/archive"
)

// Config names a Prometheus and says which of its series are the cluster's.
type Config struct {
	// URL of its API, as http://127.0.0.1:9090 or https://mimir/prometheus.
	// Whatever answers its query API will do.
	URL string
	// HTTPConfig is a file with credentials and TLS, in the form of promtool's
	// --http.config.file. Empty means none are needed.
	HTTPConfig string
	// Jobs are its labels job by ours: {"kube-apiserver": "apiserver"}. Unnamed ones are
	// as in KubePrometheusStack, or as ours where it has those instead; empty ones are left out.
	Jobs map[string]string
	// Ours: its jobs have our names already, as those of `loadgen observe` and `loadgen run --observe`.
	Ours bool
	// Match are matchers that all series of the cluster fit, as PromQL writes
	// them: `cluster="prod", prometheus_replica="a"`. Empty means none.
	Match string
	// Now is our clock. Nil means time.Now.
	Now func() time.Time
}

// KubePrometheusStack is the label job of each component under the Helm chart
// kube-prometheus-stack (the jobLabel of its ServiceMonitors, templates/exporters).
func KubePrometheusStack() map[string]string {
	return map[string]string{
		control.KindAPIServer:         "apiserver",
		control.KindEtcd:              "kube-etcd",
		control.KindScheduler:         "kube-scheduler",
		control.KindControllerManager: "kube-controller-manager",
	}
}

// Source is a Prometheus to record from.
type Source struct {
	api   v1.API
	url   string            // as it may be shown
	jobs  map[string]string // our label job by its
	named map[string]string // those of its that the user gave, by ours
	ours  bool              // its jobs have our names
	match []*labels.Matcher
	clock func() time.Time // ours
	// ingestion is the longest time from a scrape, by remote write, to its query.
	ingestion time.Duration

	targets []Target
	ahead   int64 // of its clock before ours, ms
}

// New checks a Config and sends nothing. Its errors are the user's to mend.
func New(c Config) (*Source, error) {
	u, err := url.Parse(c.URL)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		shown := strconv.Quote(c.URL)
		if strings.Contains(c.URL, "@") { // there may be a password in it
			shown = "what is given"
		}
		return nil, fmt.Errorf("%s is not the URL of a Prometheus (write http://HOST:9090)", shown)
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
	client, err := api.NewClient(api.Config{Address: c.URL, RoundTripper: transport})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", s.url, err)
	}
	s.api = v1.NewAPI(client)
	return s, nil
}

// Transport makes requests with the credentials and TLS of a file of promtool's
// --http.config.file. An error is one line.
func Transport(file string) (http.RoundTripper, error) {
	h, err := httpConfig(file)
	var transport http.RoundTripper
	if err == nil {
		transport, err = config.NewRoundTripperFromConfig(*h, "stormglass", config.WithUserAgent("stormglass"))
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %s (it is what promtool takes as --http.config.file)", file, oneLine(err))
	}
	return transport, nil
}

// httpConfig reads a file of promtool's --http.config.file. The files that it names,
// relative to itself, are checked: Prometheus' client would read a device without end.
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

// checkNamed checks the files that fields name: those of NAME_file, and a header's list
// of files.
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

// theirJobs turns the map of jobs round, with the defaults in it.
func theirJobs(named map[string]string) (map[string]string, error) {
	jobs := KubePrometheusStack()
	for ours, theirs := range named {
		if _, known := jobs[ours]; !known {
			return nil, fmt.Errorf("job %q is no component (it is one of %s)", ours, strings.Join(slices.Sorted(maps.Keys(jobs)), ", "))
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
			return nil, fmt.Errorf("job %q is named for %s and for %s (tell them apart by relabelling, or leave one out: %s=)", theirs, other, ours, ours)
		}
		all[theirs] = ours
	}
	if len(all) == 0 {
		return nil, errors.New("every job is left out: nothing would be read")
	}
	return all, nil
}

func parseMatch(text string) ([]*labels.Matcher, error) {
	if strings.TrimSpace(text) == "" {
		return nil, nil
	}
	matchers, err := archive.NewParser().ParseMetricSelector("{" + text + "}")
	if err != nil {
		return nil, fmt.Errorf("%q are not matchers: %s (write them as in PromQL: cluster=\"prod\")", text, oneLine(err))
	}
	for _, m := range matchers {
		if m.Name == model.MetricNameLabel || m.Name == "job" {
			return nil, fmt.Errorf("%q matches %s, which is matched already (name what tells the cluster from others)", text, m.Name)
		}
	}
	return matchers, nil
}

// selector is a PromQL selector of series of the cluster.
func (s *Source) selector(more ...*labels.Matcher) string {
	var parts []string
	for _, m := range append(more, s.match...) {
		parts = append(parts, m.String())
	}
	return "{" + strings.Join(parts, ",") + "}"
}

func oneLine(err error) string { return strings.Join(strings.Fields(err.Error()), " ") }
