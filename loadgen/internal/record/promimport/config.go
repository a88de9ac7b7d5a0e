// Package promimport records from a Prometheus that already scrapes the cluster, instead of scraping it a second time.
// It copies the samples into the run's archive: judging queries no network, and samples that were not copied count as
// no data.
//
// # Boundaries
//
// At a phase's boundary the run waits, without the phase's load, until every target was scraped once more. These
// scrapes are copied a second time with the boundary's time, so that all targets have samples of one moment, as in
// package record. The activity of other clients between a scrape and that moment counts as after it.
//
// # Reconstruction
//
// A query returns samples, but not when their scrapes were made; the times of up supply that. A series that is missing
// from a scrape gets a staleness marker. A counter that first appears gets a zero at the previous scrape, if the
// process was the same. up is 0 where no scrape arrived for two and a half intervals or a part of the copy failed.
//
// Times are shifted by the difference between the two clocks, which is measured once.
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

// Config names a Prometheus and selects the cluster's series in it.
type Config struct {
	// URL of its API, as http://127.0.0.1:9090 or https://mimir/prometheus. Any server with this query API will do.
	URL string
	// HTTPConfig is a file with credentials and TLS, in the form of promtool's
	// --http.config.file. Empty means none are needed.
	HTTPConfig string
	// Jobs maps our jobs to its label job: {"kube-apiserver": "apiserver"}. The defaults are the names of
	// KubePrometheusStack, or our names if it has those instead. An empty name omits the job.
	Jobs map[string]string
	// Ours says that its jobs have our names already, as with `loadgen observe` and `loadgen run --observe`.
	Ours bool
	// Match holds matchers that all series of the cluster satisfy, as in PromQL: `cluster="prod",
	// prometheus_replica="a"`. Empty means none.
	Match string
	// Now is our clock. Nil means time.Now.
	Now func() time.Time
}

// KubePrometheusStack returns the label job of each component under the Helm chart kube-prometheus-stack (the jobLabel
// of its ServiceMonitors, templates/exporters).
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
	jobs  map[string]string // our job label by its job label
	named map[string]string // its job labels that the user gave, by ours
	ours  bool              // its jobs have our names
	match []*labels.Matcher
	clock func() time.Time // ours
	// ingestion is the longest time from a scrape, by remote write, to its query.
	ingestion time.Duration

	targets []Target
	ahead   int64 // of its clock before ours, ms
}

// New checks a Config and sends nothing. Its errors are the user's to fix.
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

// Transport makes requests with the credentials and TLS of a file in the form of promtool's --http.config.file. An
// error is one line.
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

// httpConfig reads such a file. It checks the files that the file names, relative to itself, because Prometheus' client
// would read a device without end.
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

// checkNamed checks the files that fields name: in fields called NAME_file, and in a header's list of files.
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

// theirJobs inverts the map of jobs and adds the defaults.
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

// selector returns a PromQL selector for series of the cluster.
func (s *Source) selector(more ...*labels.Matcher) string {
	var parts []string
	for _, m := range append(more, s.match...) {
		parts = append(parts, m.String())
	}
	return "{" + strings.Join(parts, ",") + "}"
}

func oneLine(err error) string { return strings.Join(strings.Fields(err.Error()), " ") }
