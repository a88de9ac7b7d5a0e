// Package planetest starts real control planes for tests. It runs the program controlplane like a user, and imports
// only the package control. Tests of small packages can therefore use a plane without linking Kubernetes.
package planetest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stormglass/stormglass/controlplane/control"
)

// BinaryEnv and LoadgenEnv are the environment variables with the paths of the built programs controlplane and loadgen.
// If a variable is not set, Build or Loadgen builds the program. This takes up to a minute. `make test` sets both
// variables.
const (
	BinaryEnv  = "STORMGLASS_CONTROLPLANE"
	LoadgenEnv = "STORMGLASS_LOADGEN"
)

// Build returns the path of the program controlplane. The path is the value of BinaryEnv, if that is set. Otherwise
// Build builds the program in dir, with the versions of tools/ldflags.
func Build(dir string) (string, error) { return program(dir, "controlplane", BinaryEnv) }

// Loadgen returns the path of the program loadgen. The path is the value of LoadgenEnv, if that is set. Otherwise
// Loadgen builds the program in dir.
func Loadgen(dir string) (string, error) { return program(dir, "loadgen", LoadgenEnv) }

// Programs keeps go test from reusing the cached result of a test that ran older programs: it reads
// STORMGLASS_PROGRAMS, which `make test` sets to a checksum of the programs' sources. go test knows the environment
// variables that tests read, but not the variables that TestMain reads.
func Programs(testing.TB) { _ = os.Getenv("STORMGLASS_PROGRAMS") }

func program(dir, name, env string) (string, error) {
	if binary := os.Getenv(env); binary != "" {
		return filepath.Abs(binary)
	}
	out, err := exec.Command("go", "env", "GOMOD").Output()
	if err != nil {
		return "", fmt.Errorf("find the module: %w", err)
	}
	root := filepath.Dir(strings.TrimSpace(string(out)))
	flags, err := os.ReadFile(filepath.Join(root, "tools", "ldflags"))
	if err != nil {
		return "", err
	}
	binary := filepath.Join(dir, name)
	cmd := exec.Command("go", "build", "-ldflags", strings.TrimSpace(string(flags)), "-o", binary, "./cmd/"+name)
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build %s: %w\n%s", name, err, out)
	}
	return binary, nil
}

// Plane is a control plane that a package's tests share.
type Plane struct {
	*control.Supervisor
	// Binary is the path of the program that runs the plane.
	Binary string
	// Config is the plane's configuration; nil means the defaults.
	Config *control.Config
	// Ready prepares the plane; nil means no preparation. Main calls it when the plane is ready, before the first test.
	// If it returns an error, Main runs no tests and fails.
	Ready func(*Plane) error
}

// Main runs a package's tests with one shared plane. Main starts the plane before the first test and stops it after the
// last test. Call it from TestMain:
//
//	var plane planetest.Plane
//
//	func TestMain(m *testing.M) { os.Exit(planetest.Main(m, &plane)) }
func Main(m *testing.M, shared *Plane) int {
	code, err := run(m, shared)
	if err != nil {
		fmt.Fprintln(os.Stderr, "planetest:", err)
		return 1
	}
	return code
}

func run(m *testing.M, shared *Plane) (code int, err error) {
	temp, err := temporary()
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(temp)
	if shared.Binary, err = Build(temp); err != nil {
		return 0, err
	}
	shared.Supervisor, err = start(shared.Binary, filepath.Join(temp, "plane"), shared.Config)
	if err != nil {
		return 0, err
	}
	if shared.Ready != nil {
		err = shared.Ready(shared)
	}
	if err == nil {
		code = m.Run()
	}
	return code, errors.Join(err, shared.Stop(context.Background()))
}

// Start starts a separate plane for one test, and stops it when the test ends.
func Start(t testing.TB, binary string, config *control.Config) *control.Supervisor {
	t.Helper()
	s, err := start(binary, filepath.Join(Dir(t), "plane"), config)
	if err != nil {
		t.Fatalf("start a control plane: %v", err)
	}
	t.Cleanup(func() {
		if err := s.Stop(context.Background()); err != nil {
			t.Errorf("the control plane did not stop cleanly: %v", err)
		}
	})
	return s
}

func start(binary, dir string, config *control.Config) (*control.Supervisor, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	return control.Start(ctx, control.StartOptions{Binary: binary, Dir: dir, Config: config})
}
