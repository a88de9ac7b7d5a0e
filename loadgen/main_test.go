package loadgen_test

import (
	"os"
	"testing"

	"github.com/stormglass/stormglass/controlplane/control"
	"github.com/stormglass/stormglass/internal/planetest"
)

func TestMain(m *testing.M) { os.Exit(planetest.Main(m, &planetest.Plane{Ready: announce})) }

func TestPrograms(t *testing.T) { planetest.Programs(t) }

// announce sets the control plane for the examples.
func announce(p *planetest.Plane) error { return os.Setenv(control.DirEnv, p.Cluster().Dir) }
