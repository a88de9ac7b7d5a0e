package controlplane_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stormglass/stormglass/controlplane"
	"github.com/stormglass/stormglass/controlplane/control"
	"github.com/stormglass/stormglass/internal/planetest"
)

// TestMetricsServer reads the usage of nodes through the API server, kills metrics-server, and resumes the plane
// without it.
func TestMetricsServer(t *testing.T) {
	dir := filepath.Join(planetest.Dir(t), "plane")
	config := filepath.Join(t.TempDir(), "config.yaml")
	up := func(yaml string) (c control.Cluster) {
		t.Helper()
		if err := os.WriteFile(config, []byte(yaml), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal([]byte(ok(t, "up", "--detach", "--dir", dir, "--config", config, "--output", "json")), &c); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { run(t, "down", "--dir", dir) })
		return c
	}
	served := func() bool {
		_, _, code := run(t, "kubectl", "--dir", dir, "get", "--raw", "/apis/metrics.k8s.io/v1beta1/nodes")
		return code == 0
	}

	c := up("metricsServer: {replicas: 1, flags: {metric-resolution: 10s, kubelet-request-timeout: 5s}}\nnetworkFaults: on\n")
	if !served() {
		t.Error("a ready plane does not serve metrics.k8s.io")
	}
	pod := controlPlanePod(t, client(t, c, "admin"), "metrics-server-control-plane", "is Ready", podReady)
	if got, want := pod.Spec.Containers[0].Image, "registry.k8s.io/metrics-server/metrics-server:"+controlplane.MetricsServerVersion; got != want {
		t.Errorf("image = %s, want %s", got, want)
	}
	eventually(t, time.Minute, "kubectl top shows a node", func() bool {
		out, _, _ := run(t, "kubectl", "--dir", dir, "top", "nodes")
		return strings.Contains(out, "control-plane ")
	})
	if !strings.Contains(ok(t, "kubectl", "--dir", dir, "top", "pods", "-n", "kube-system"), "etcd-control-plane ") {
		t.Error("kubectl top does not list the etcd pod")
	}
	ok(t, "fault", "network-delay", "--dir", dir, "--component", "metrics-server", "--delay", "500ms")
	if began := time.Now(); !served() || time.Since(began) < time.Second {
		t.Errorf("a request for metrics took %s over a link with a delay of 500 ms in each direction", time.Since(began))
	}
	ok(t, "fault", "clear", "--dir", dir, "1")
	ok(t, "fault", "kill", "--dir", dir, "--component", "metrics-server-0")
	if served() {
		t.Error("metrics.k8s.io is served although metrics-server was killed")
	}
	ok(t, "fault", "clear", "--dir", dir, "2")
	eventually(t, 2*time.Minute, "metrics.k8s.io is served again", served)
	ok(t, "down", "--dir", dir)

	up("")
	if out := ok(t, "kubectl", "--dir", dir, "get", "apiservices"); strings.Contains(out, "metrics") {
		t.Errorf("the APIService remained without a server:\n%s", out)
	}
}

// TestVersionOfMetricsServer checks that MetricsServerVersion is the version of the module in go.mod.
func TestVersionOfMetricsServer(t *testing.T) {
	mod, err := os.ReadFile("../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	if want := "sigs.k8s.io/metrics-server " + controlplane.MetricsServerVersion + "\n"; !strings.Contains(string(mod), want) {
		t.Errorf("go.mod does not contain %q", want)
	}
}
