package deploy_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/stormglass/stormglass/alerts"
	"github.com/stormglass/stormglass/controlplane/control"
	"github.com/stormglass/stormglass/deploy/deploytest"
	"github.com/stormglass/stormglass/internal/scrapeconfig"
)

// promtool accepts the rules, and the unit tests of the rules pass in promtool.
func TestPromtoolAcceptsTheRules(t *testing.T) {
	root, promtool := deploytest.Root(t), deploytest.Tool(t, deploytest.Promtool)
	for _, test := range []struct {
		pattern string
		args    []string
	}{
		{"alerts/*.yaml", []string{"check", "rules", "--lint=all", "--lint-fatal"}},
		{"alerts/tests/*.yaml", []string{"test", "rules"}},
	} {
		files, err := filepath.Glob(filepath.Join(root, filepath.FromSlash(test.pattern)))
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %v %v", test.pattern, files, err)
		}
		if out, err := deploytest.Run(t, root, promtool, append(test.args, files...)...); err != nil {
			t.Errorf("promtool %s: %v\n%s", strings.Join(test.args, " "), err, out)
		}
	}
}

// promtool accepts the configuration at its path in the container, together with the targets of a plane, and finds
// every rule file.
func TestPromtoolAcceptsTheConfiguration(t *testing.T) {
	plane := t.TempDir()
	key := func(name string) string {
		file := filepath.Join(plane, "pki", name)
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	if _, err := scrapeconfig.Write(plane, []control.ScrapeTarget{{
		Job: "etcd", Instance: "etcd-0", URL: "https://127.0.0.1:2379/metrics",
		CAFile: key("ca.crt"), CertFile: key("scrape.crt"), KeyFile: key("scrape.key"),
	}}, scrapeconfig.Options{}); err != nil {
		t.Fatal(err)
	}
	p, err := deploytest.Compose(t, "STORMGLASS_USER=1000:1000", "STORMGLASS_PLANE="+plane)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(p.Services["prometheus"].Container(t), "etc", "prometheus", "prometheus.yml")
	check := func() (string, error) {
		return deploytest.Run(t, filepath.Dir(file), deploytest.Tool(t, deploytest.Promtool), "check", "config", "--lint=all", "--lint-fatal", file)
	}
	out, err := check()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	rules, err := alerts.Load()
	if err != nil {
		t.Fatal(err)
	}
	for _, g := range rules {
		if !strings.Contains(out, "/rules/"+g.File) {
			t.Errorf("Prometheus did not load the rules of %s:\n%s", g.File, out)
		}
	}
	// promtool reads the plane's files: it fails if a key that they name is missing.
	if err := os.Remove(filepath.Join(plane, "pki", "scrape.key")); err != nil {
		t.Fatal(err)
	}
	if out, err := check(); err == nil || !strings.Contains(out, "plane/pki/scrape.key") {
		t.Errorf("a plane without its key is accepted: %v\n%s", err, out)
	}
}

// amtool accepts the configuration of Alertmanager. Alerts have a receiver, and inhibitions name only existing alerts.
func TestAmtoolAcceptsTheConfiguration(t *testing.T) {
	file := filepath.Join(compose(t).Services["alertmanager"].Container(t), "etc", "alertmanager", "alertmanager.yml")
	amtool := deploytest.Tool(t, deploytest.Amtool)
	if out, err := deploytest.Run(t, filepath.Dir(file), amtool, "check-config", file); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	out, err := deploytest.Run(t, filepath.Dir(file), amtool, "config", "routes", "test", "--config.file="+file, "alertname=TargetDown", "severity=critical")
	if err != nil || strings.TrimSpace(out) != "none" {
		t.Errorf("the receiver of TargetDown: %q, %v", out, err)
	}

	var config struct {
		InhibitRules []struct {
			Source []string `yaml:"source_matchers"`
			Target []string `yaml:"target_matchers"`
		} `yaml:"inhibit_rules"`
	}
	text, err := os.ReadFile(file)
	if err == nil {
		err = yaml.Unmarshal(text, &config)
	}
	if err != nil {
		t.Fatal(err)
	}
	rules, err := alerts.Rules()
	if err != nil {
		t.Fatal(err)
	}
	for _, inhibit := range config.InhibitRules {
		for _, matcher := range slices.Concat(inhibit.Source, inhibit.Target) {
			_, value, _ := strings.Cut(matcher, "=")
			for name := range strings.SplitSeq(strings.Trim(value, `~ "`), "|") {
				if !slices.ContainsFunc(rules, func(a alerts.Alert) bool { return a.Alert == name }) {
					t.Errorf("the matcher %s names the alert %q, which does not exist", matcher, name)
				}
			}
		}
	}
}
