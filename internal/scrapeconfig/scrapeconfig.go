// Package scrapeconfig writes a configuration for the user's Prometheus server. It has the targets that Stormglass
// scrapes, with the same labels and credentials. The package does not depend on Prometheus' packages. It writes these
// files to the directory prometheus/ of a control plane or a run:
//
//	prometheus.yml   to start a Prometheus: it includes the files below
//	scrape.yaml      for another Prometheus: scrape_config_files: [.../scrape.yaml]
//	targets/*.json   addresses of the targets, for file-based discovery
//	rules/*.yaml     the rules of package alerts
//
// The configuration refers to key files and does not copy them. The paths of key files below the same plane or run
// directory are relative: the directory can be mounted elsewhere. A control plane may have different ports at each
// start. It then writes the files again, and a running Prometheus server reloads the targets.
package scrapeconfig

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/stormglass/stormglass/controlplane/control"
	"github.com/stormglass/stormglass/internal/atomicfile"
)

// Names of the folder and of its files and subdirectories.
const (
	Dir        = "prometheus"
	ServerFile = "prometheus.yml"
	ScrapeFile = "scrape.yaml"
	targetsDir = "targets"
	rulesDir   = "rules"
)

// Options configure Write. The zero value is usable.
type Options struct {
	// Interval is the scrape interval in prometheus.yml. Zero means 5 s.
	Interval time.Duration
	// Rules contains rule files (*.yaml), which Write copies. Nil means no rules.
	Rules fs.FS
	// Owner describes the plane or run, such as "the control plane in ...". The first line of each file contains Owner.
	Owner string
}

// evaluation is the evaluation interval of rule groups that set none. Stormglass's rules set their own intervals.
const evaluation = 15 * time.Second

// Write writes the configuration into base/prometheus and returns this folder. It replaces existing files atomically,
// one by one.
func Write(base string, targets []control.ScrapeTarget, o Options) (dir string, err error) {
	if base, err = filepath.Abs(base); err != nil {
		return "", fmt.Errorf("scrape configuration: %w", err)
	}
	w := writer{dir: filepath.Join(base, Dir), base: base, head: o.head(), wrote: map[string]bool{}}
	configs, err := w.jobs(targets)
	if err != nil {
		return "", fmt.Errorf("scrape configuration: %w", err)
	}
	for _, sub := range []string{targetsDir, rulesDir} {
		if err := os.MkdirAll(filepath.Join(w.dir, sub), 0o700); err != nil {
			return "", fmt.Errorf("scrape configuration: %w", err)
		}
	}
	server := serverConfig{ScrapeConfigFiles: []string{ScrapeFile}}
	server.Global.ScrapeInterval = duration(cmp.Or(o.Interval, 5*time.Second))
	server.Global.EvaluationInterval = duration(evaluation)
	if o.Rules != nil {
		server.RuleFiles = []string{rulesDir + "/*.yaml"}
	}
	err = errors.Join(w.targets(configs), w.rules(o.Rules),
		w.yaml(ScrapeFile, scrapeConfigs{configs}), w.yaml(ServerFile, server), w.sweep())
	if err != nil {
		return "", fmt.Errorf("scrape configuration: %w", err)
	}
	return w.dir, nil
}

func (o Options) head() string {
	return fmt.Sprintf("# Written by Stormglass for %s, at each start.\n", cmp.Or(o.Owner, "its targets"))
}

// duration returns d in Prometheus' notation.
func duration(d time.Duration) string {
	if d%time.Second == 0 {
		return fmt.Sprintf("%ds", d/time.Second)
	}
	return fmt.Sprintf("%dms", d.Milliseconds())
}

// jobs returns one scrape configuration for each combination of job, path and credentials.
func (w writer) jobs(targets []control.ScrapeTarget) ([]*scrapeConfig, error) {
	var all []*scrapeConfig
	named := map[string]int{}
	for _, t := range targets {
		u, err := url.Parse(t.URL)
		if err != nil || u.Host == "" {
			return nil, fmt.Errorf("%s: %q is not the URL of a /metrics endpoint", t.Instance, t.URL)
		}
		c := w.config(t, u)
		i := slices.IndexFunc(all, func(x *scrapeConfig) bool { return x.same(c) })
		if i < 0 {
			i = len(all)
			all = append(all, c)
			// The targets have the label job, because the names of scrape configurations must be unique.
			if named[t.Job]++; named[t.Job] > 1 {
				c.JobName = fmt.Sprintf("%s-%d", t.Job, named[t.Job])
			}
		}
		all[i].found = append(all[i].found, targetGroup{
			Targets: []string{u.Host}, Labels: map[string]string{"job": t.Job, "instance": t.Instance},
		})
	}
	return all, nil
}

func (w writer) config(t control.ScrapeTarget, u *url.URL) *scrapeConfig {
	c := &scrapeConfig{
		JobName: t.Job, Scheme: u.Scheme, MetricsPath: cmp.Or(u.Path, "/"), Params: u.Query(), job: t.Job,
	}
	if u.Scheme == "https" {
		c.TLS = &tlsConfig{
			CAFile: w.path(t.CAFile), CertFile: w.path(t.CertFile), KeyFile: w.path(t.KeyFile),
			ServerName: t.ServerName, InsecureSkipVerify: t.InsecureSkipVerify,
		}
	}
	c.ProxyURL = t.ProxyURL
	if t.TokenFile != "" {
		c.Authorization = &authorization{CredentialsFile: w.path(t.TokenFile)}
	}
	return c
}

// path returns the path of a file as the configuration contains it: relative to the folder if the file is below base,
// otherwise absolute.
func (w writer) path(file string) string {
	if file == "" {
		return ""
	}
	if abs, err := filepath.Abs(file); err == nil {
		file = abs
	}
	if below, err := filepath.Rel(w.base, file); err != nil || !filepath.IsLocal(below) {
		return file
	}
	rel, err := filepath.Rel(w.dir, file)
	if err != nil {
		return file
	}
	return filepath.ToSlash(rel)
}

type writer struct {
	dir, base, head string
	wrote           map[string]bool // paths of the written files
}

func (w writer) yaml(name string, v any) error {
	text, err := yaml.Marshal(v)
	if err != nil {
		return err
	}
	return w.file(name, append([]byte(w.head), text...))
}

func (w writer) targets(configs []*scrapeConfig) error {
	for _, c := range configs {
		name := targetsDir + "/" + strings.NewReplacer("/", "-", " ", "-").Replace(c.JobName) + ".json"
		text, err := json.MarshalIndent(c.found, "", "  ")
		if err != nil {
			return err
		}
		if err := w.file(name, append(text, '\n')); err != nil {
			return err
		}
		c.Discovery = []fileDiscovery{{Files: []string{name}}}
	}
	return nil
}

func (w writer) rules(files fs.FS) error {
	if files == nil {
		return nil
	}
	names, err := fs.Glob(files, "*.yaml")
	if err != nil {
		return err
	}
	for _, name := range names {
		text, err := fs.ReadFile(files, name)
		if err != nil {
			return err
		}
		if err := w.file(rulesDir+"/"+name, text); err != nil {
			return err
		}
	}
	return nil
}

func (w writer) file(name string, text []byte) error {
	path := filepath.Join(w.dir, filepath.FromSlash(name))
	w.wrote[path] = true
	return atomicfile.Write(path, text)
}

// sweep removes targets and rules of earlier calls of Write that this call has not written.
func (w writer) sweep() error {
	var errs []error
	for _, sub := range []string{targetsDir, rulesDir} {
		found, err := filepath.Glob(filepath.Join(w.dir, sub, "*"))
		errs = append(errs, err)
		for _, path := range found {
			if !w.wrote[path] {
				errs = append(errs, os.Remove(path))
			}
		}
	}
	return errors.Join(errs...)
}

// serverConfig is the part of prometheus.yml that this package writes. The format is described at
// https://prometheus.io/docs/prometheus/latest/configuration/configuration/.

type serverConfig struct {
	Global struct {
		ScrapeInterval     string `yaml:"scrape_interval"`
		EvaluationInterval string `yaml:"evaluation_interval"`
	} `yaml:"global"`
	RuleFiles         []string `yaml:"rule_files,omitempty"`
	ScrapeConfigFiles []string `yaml:"scrape_config_files"`
}

type scrapeConfigs struct {
	ScrapeConfigs []*scrapeConfig `yaml:"scrape_configs"`
}

type scrapeConfig struct {
	JobName       string          `yaml:"job_name"`
	Scheme        string          `yaml:"scheme"`
	MetricsPath   string          `yaml:"metrics_path"`
	Params        url.Values      `yaml:"params,omitempty"`
	TLS           *tlsConfig      `yaml:"tls_config,omitempty"`
	Authorization *authorization  `yaml:"authorization,omitempty"`
	ProxyURL      string          `yaml:"proxy_url,omitempty"`
	Discovery     []fileDiscovery `yaml:"file_sd_configs"`

	job   string // value of the label job of the targets; configurations with different credentials may have the same value
	found []targetGroup
}

type tlsConfig struct {
	CAFile             string `yaml:"ca_file,omitempty"`
	CertFile           string `yaml:"cert_file,omitempty"`
	KeyFile            string `yaml:"key_file,omitempty"`
	ServerName         string `yaml:"server_name,omitempty"`
	InsecureSkipVerify bool   `yaml:"insecure_skip_verify,omitempty"`
}

type authorization struct {
	CredentialsFile string `yaml:"credentials_file"`
}

type fileDiscovery struct {
	Files []string `yaml:"files"`
}

// targetGroup is one entry in a targets file.
type targetGroup struct {
	Targets []string          `json:"targets"`
	Labels  map[string]string `json:"labels"`
}

// same reports whether c and other differ only in name and targets, so that one scrape configuration suffices.
func (c *scrapeConfig) same(other *scrapeConfig) bool {
	own, others := *c, *other
	own.JobName, own.found = others.JobName, others.found
	return reflect.DeepEqual(own, others)
}
