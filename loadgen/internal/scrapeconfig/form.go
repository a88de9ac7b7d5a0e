package scrapeconfig

import (
	"net/url"
	"reflect"
)

// What Prometheus reads, as much of it as is written here:
// https://prometheus.io/docs/prometheus/latest/configuration/configuration/

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
	Discovery     []fileDiscovery `yaml:"file_sd_configs"`

	job   string // the label, which several may have
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

// targetGroup is one entry of a file of targets.
type targetGroup struct {
	Targets []string          `json:"targets"`
	Labels  map[string]string `json:"labels"`
}

// same reports whether targets of both fit into one configuration.
func (c *scrapeConfig) same(other *scrapeConfig) bool {
	own, others := *c, *other
	own.JobName, own.found = others.JobName, others.found
	return reflect.DeepEqual(own, others)
}
