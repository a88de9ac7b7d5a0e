package realplane

import (
	"os"
	"testing"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/stormglass/stormglass/controlplane/control"
	"github.com/stormglass/stormglass/internal/planetest"
)

// plane is shared by all tests, so a test that creates nodes or certificate requests deletes them.
var plane = planetest.Plane{Config: &control.Config{APIServer: control.APIServer{Audit: control.AuditMetadata}, Etcd: control.Etcd{Flags: control.Flags{"enable-pprof": "true"}}}}

func TestMain(m *testing.M) { os.Exit(planetest.Main(m, &plane)) }

func TestPrograms(t *testing.T) { planetest.Programs(t) }

// loadConfig returns a configuration of the load's user, without a rate limit.
func loadConfig(t *testing.T) *rest.Config {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", plane.Cluster().Kubeconfigs["loadgen"])
	must(t, err)
	config.QPS = -1
	return config
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
