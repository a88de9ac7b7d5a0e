package deploy_test

import (
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/stormglass/stormglass/deploy/deploytest"
)

// compose returns the compose project for a plane's directory without files.
func compose(t *testing.T) deploytest.Project {
	t.Helper()
	plane := t.TempDir()
	for _, dir := range []string{"prometheus", "pki"} {
		if err := os.Mkdir(filepath.Join(plane, dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	p, err := deploytest.Compose(t, "STORMGLASS_USER=1000:1000", "STORMGLASS_PLANE="+plane)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// Docker Compose accepts the file. The mounted files exist and are mounted read-only, and no service listens on
// addresses that other machines can reach.
func TestComposeFile(t *testing.T) {
	p := compose(t)
	var names []string
	for name, s := range p.Services {
		names = append(names, name)
		if !pinned.MatchString(s.Image) {
			t.Errorf("%s: the image %s is not pinned to a release", name, s.Image)
		}
		if s.NetworkMode != "host" {
			t.Errorf("%s: in network %q it does not reach the loopback, where the plane listens", name, s.NetworkMode)
		}
		if address := listens(s); !strings.HasPrefix(address, "127.0.0.1") {
			t.Errorf("%s listens on %q: other machines reach it", name, address)
		}
		for _, v := range s.Volumes {
			if _, err := os.Stat(v.Source); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			if v.Type != "bind" || !v.ReadOnly {
				t.Errorf("%s: %s is mounted as %s, read-only %t", name, v.Source, v.Type, v.ReadOnly)
			}
		}
	}
	if slices.Sort(names); !slices.Equal(names, []string{"alertmanager", "grafana", "prometheus"}) {
		t.Errorf("services: %v", names)
	}
	if user := p.Services["prometheus"].User; user != "1000:1000" {
		t.Errorf("Prometheus runs as %q and cannot read the plane's credentials", user)
	}
}

var pinned = regexp.MustCompile(`^[a-z]+/[a-z]+:v?\d+\.\d+\.\d+$`)

// listens returns the address on which a service listens.
func listens(s deploytest.Service) string {
	for _, arg := range s.Command {
		if address, ok := strings.CutPrefix(arg, "--web.listen-address="); ok {
			return address
		}
	}
	return s.Environment["GF_SERVER_HTTP_ADDR"] + ":" + s.Environment["GF_SERVER_HTTP_PORT"]
}

// The error for a missing variable names the variable.
func TestComposeAsksForThePlane(t *testing.T) {
	_, err := deploytest.Compose(t, "STORMGLASS_USER=", "STORMGLASS_PLANE=")
	for _, name := range []string{"STORMGLASS_USER", "STORMGLASS_PLANE"} {
		if err == nil || !strings.Contains(err.Error(), "required variable "+name) {
			t.Errorf("without %s: %v", name, err)
		}
	}
}

// The images have the versions that are tested here. Version v0.315.0 of Prometheus' module is release 3.15.0.
func TestImagesMatchTestedVersions(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(deploytest.Root(t), "tools", "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	version := func(module string) string {
		_, after, _ := strings.Cut(string(text), "\t"+module+" v")
		if fields := strings.Fields(after); len(fields) > 0 {
			return fields[0]
		}
		t.Fatalf("tools/go.mod has no %s", module)
		return ""
	}
	module := regexp.MustCompile(`^0\.(\d)(\d\d)\.(\d+)$`).FindStringSubmatch(version("github.com/prometheus/prometheus"))
	if module == nil {
		t.Fatalf("Prometheus' modules are numbered otherwise now: %s", version("github.com/prometheus/prometheus"))
	}
	services := compose(t).Services
	for service, want := range map[string]string{
		"prometheus":   "prom/prometheus:v" + module[1] + "." + strings.TrimPrefix(module[2], "0") + "." + module[3],
		"alertmanager": "prom/alertmanager:v" + version("github.com/prometheus/alertmanager"),
	} {
		if got := services[service].Image; got != want {
			t.Errorf("%s runs %s; the tests run %s", service, got, want)
		}
	}
}

// Prometheus sends its alerts to the address on which Alertmanager listens.
func TestPrometheusFindsAlertmanager(t *testing.T) {
	p := compose(t)
	var config struct {
		Alerting struct {
			Alertmanagers []struct {
				Static []struct{ Targets []string } `yaml:"static_configs"`
			}
		}
	}
	readMounted(t, p.Services["prometheus"], "/etc/prometheus/prometheus.yml", &config)
	all := config.Alerting.Alertmanagers
	if len(all) != 1 || len(all[0].Static) != 1 || !slices.Equal(all[0].Static[0].Targets, []string{listens(p.Services["alertmanager"])}) {
		t.Errorf("Alertmanager listens on %s, Prometheus knows %+v", listens(p.Services["alertmanager"]), all)
	}
}

// The data sources of Grafana have the addresses of the other services, and the dashboards are at their configured
// path.
func TestGrafanaIsProvisioned(t *testing.T) {
	p := compose(t)
	grafana := p.Services["grafana"]
	var sources struct {
		Datasources []struct {
			UID, Type, URL string
			IsDefault      bool `yaml:"isDefault"`
		}
	}
	readMounted(t, grafana, "/etc/grafana/provisioning/datasources/*.yaml", &sources)
	found := map[string]bool{}
	for _, d := range sources.Datasources {
		found[d.Type] = d.UID == d.Type && d.URL == "http://"+listens(p.Services[d.Type]) && d.IsDefault == (d.Type == "prometheus")
	}
	if !found["prometheus"] || !found["alertmanager"] || len(found) != 2 {
		t.Errorf("data sources: %+v", sources.Datasources)
	}

	var boards struct {
		Providers []struct {
			Type    string
			Options struct{ Path string }
		}
	}
	readMounted(t, grafana, "/etc/grafana/provisioning/dashboards/*.yaml", &boards)
	container := grafana.Container(t)
	home := grafana.Environment["GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH"]
	if len(boards.Providers) != 1 || boards.Providers[0].Type != "file" || boards.Providers[0].Options.Path != path.Dir(home) {
		t.Fatalf("providers of dashboards: %+v, home %s", boards.Providers, home)
	}
	if _, err := os.Stat(filepath.Join(container, home)); err != nil {
		t.Errorf("the home dashboard: %v", err)
	}
}

// readMounted reads the only file of a service that matches a pattern in its container.
func readMounted(t *testing.T, s deploytest.Service, pattern string, into any) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(s.Container(t), pattern))
	if err != nil || len(files) != 1 {
		t.Fatalf("%s is %v: %v", pattern, files, err)
	}
	text, err := os.ReadFile(files[0])
	if err == nil {
		err = yaml.Unmarshal(text, into)
	}
	if err != nil {
		t.Fatal(err)
	}
}
