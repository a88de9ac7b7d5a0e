package containers

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stormglass/stormglass/deploy/deploytest"
	"github.com/stormglass/stormglass/internal/imagearchive"
)

// ModuleOf converts release numbers to versions of Go modules. It refuses an image that no module builds, and names it.
func TestModuleOfImage(t *testing.T) {
	for image, want := range map[string]string{
		"prom/prometheus:v3.15.0":                  "github.com/prometheus/prometheus@v0.315.0 3.15.0",
		"docker.io/prom/prometheus:v3.5.1":         "github.com/prometheus/prometheus@v0.305.1 3.5.1",
		"prom/alertmanager:v0.34.0":                "github.com/prometheus/alertmanager@v0.34.0 0.34.0",
		"grafana/grafana:13.2.0":                   "image grafana/grafana:13.2.0: not built from a known Go module",
		"prom/prometheus:latest":                   `image "prom/prometheus:latest" is not OWNER/NAME:vX.Y.Z`,
		"prom/prometheus":                          "is not OWNER/NAME:vX.Y.Z",
		"registry.invalid/prom/prometheus:v3.15.0": "is not OWNER/NAME:vX.Y.Z",
	} {
		m, err := ModuleOf(image)
		got := m.Path + "@" + m.Version + " " + m.Release
		if err != nil {
			got = err.Error()
		}
		if !strings.Contains(got, want) {
			t.Errorf("%s: %s, want %s", image, got, want)
		}
	}
}

// The image contains the program, its user, and directories to which this user may write, like the published image.
func TestImageOfProgram(t *testing.T) {
	m, err := ModuleOf("prom/alertmanager:v0.34.0")
	if err != nil {
		t.Fatal(err)
	}
	image := m.image("prom/alertmanager:v0.34.0", "/build/alertmanager")
	if image.User != "65534:65534" || !slices.Equal(image.Entrypoint, []string{"/bin/alertmanager"}) || image.WorkingDir != "/alertmanager" {
		t.Errorf("%+v", image)
	}
	for _, f := range image.Files {
		if f.Name == "alertmanager/" && f.Owner == nobody {
			return
		}
	}
	t.Errorf("no directory for its data: %+v", image.Files)
}

// service returns a service with every field that containers support.
func service(t *testing.T) deploytest.Service {
	file := filepath.Join(t.TempDir(), "prometheus.yml")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	return deploytest.Service{
		Image: "prom/prometheus:v3.15.0", NetworkMode: "host", User: "1000:1001", Command: []string{"--config.file=/etc/c.yml"},
		Environment: map[string]string{"B": "2", "A": "1"}, Tmpfs: []string{"/data:size=1g"},
		Volumes: []deploytest.Volume{{Type: "bind", Source: file, Target: "/etc/c.yml", ReadOnly: true}},
	}
}

// Each engine gets every field that the compose file sets for a service.
func TestEveryFieldReachesTheEngine(t *testing.T) {
	s := service(t)
	for name, c := range map[string]struct {
		kind
		want []string
	}{
		"podman": {podman{[]string{"podman"}}, []string{
			"--network host", "--user 1000:1001", "--env A=1 --env B=2", "--tmpfs /data:size=1g",
			"type=bind,source=" + s.Volumes[0].Source + ",destination=/etc/c.yml,readonly=true", " prom/prometheus:v3.15.0 --config.file=/etc/c.yml",
		}},
		"containerd": {containerd{argv: []string{"ctr"}}, []string{
			"--net-host", "--env A=1 --env B=2", "type=tmpfs,src=tmpfs,dst=/data,options=nosuid:nodev:mode=1777:size=1g",
			"type=bind,src=" + s.Volumes[0].Source + ",dst=/etc/c.yml,options=rbind:ro", " docker.io/prom/prometheus:v3.15.0 x /bin/prometheus --config.file=/etc/c.yml",
		}},
	} {
		argv := strings.Join(c.run("x", s, []string{"/bin/prometheus"}), " ")
		for _, want := range c.want {
			if !strings.Contains(argv, want) {
				t.Errorf("%s: %q is missing in\n%s", name, want, argv)
			}
		}
	}
}

// A service with a field that the container would ignore is refused before any image is stored.
func TestServicesThatAreNotRun(t *testing.T) {
	for want, change := range map[string]func(*deploytest.Service){
		`service x: network_mode "bridge": only host is supported here`: func(s *deploytest.Service) { s.NetworkMode = "bridge" },
		`service x: entrypoint ["/bin/sh"]`:                             func(s *deploytest.Service) { s.Entrypoint = []string{"/bin/sh"} },
		"service x: volume /data: only files and directories": func(s *deploytest.Service) {
			s.Volumes[0] = deploytest.Volume{Type: "volume", Source: "data", Target: "/data"}
		},
		"service x: volume /etc/c.yml: stat":                   func(s *deploytest.Service) { s.Volumes[0].Source += ".absent" },
		"service x: its image is prom/prometheus:v3.16.0, not": func(s *deploytest.Service) { s.Image = "prom/prometheus:v3.16.0" },
	} {
		s := service(t)
		change(&s)
		e := &Engine{dir: t.TempDir()}
		_, err := e.Start(t.Context(), "x", s, imagearchive.Image{Name: "prom/prometheus:v3.15.0"})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
		if left, err := os.ReadDir(e.dir); err != nil || len(left) > 0 {
			t.Errorf("left: %v %v", left, err)
		}
	}
}

// The error for an unknown engine contains its name.
func TestUnknownEngine(t *testing.T) {
	_, err := Open(t.Context(), "docker", filepath.Join(t.TempDir(), "store"))
	if err == nil || !strings.Contains(err.Error(), `unknown container engine "docker" (podman, containerd)`) {
		t.Error(err)
	}
}
