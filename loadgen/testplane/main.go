package testplane

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stormglass/stormglass/controlplane/control"
	"github.com/stormglass/stormglass/internal/commandline"
	"github.com/stormglass/stormglass/loadgen/internal/scratch"
)

// startWithin is the maximum time for each step of the plane's start. A step takes seconds unless the machine is
// overloaded.
const startWithin = 2 * time.Minute

// Main starts the plane, runs the package's tests, stops the plane and returns the exit code. If the plane does not start or
// does not stop, Main prints the reason and returns at least 1.
func (p *Plane) Main(m *testing.M) int {
	code, err := p.main(m.Run)
	if err != nil {
		fmt.Fprintln(os.Stderr, "testplane:", err)
		code = max(code, 1)
	}
	return code
}

func (p *Plane) main(tests func() int) (code int, err error) {
	binary, err := p.find()
	if err != nil {
		return 0, err
	}
	scratch.Sweep() // remove what planes of killed tests have left behind
	temp, err := scratch.New(scratch.Test)
	if err != nil {
		return 0, fmt.Errorf("create a directory for the control plane: %w", err)
	}
	defer func() { err = errors.Join(err, temp.Remove()) }()
	ctx, cancel := context.WithTimeout(context.Background(), startWithin)
	defer cancel()
	p.running, err = control.Start(ctx, control.StartOptions{Binary: binary, Dir: filepath.Join(temp.Path, "plane"), Config: &p.ControlPlane})
	if err != nil {
		return 0, fmt.Errorf("start the control plane with %s: %w", binary, err)
	}
	defer func() { err = errors.Join(err, p.stop()) }()
	if err := p.define(); err != nil {
		return 0, err
	}
	stopNodes, err := p.startNodes()
	if err != nil {
		return 0, err
	}
	defer stopNodes()
	return tests(), nil
}

func (p *Plane) stop() error {
	if err := p.running.Stop(context.Background()); err != nil {
		return fmt.Errorf("the control plane did not stop cleanly: %w", err)
	}
	return nil
}

func (p *Plane) find() (string, error) {
	const hint = "`make build` in a checkout of Stormglass creates bin/controlplane; the first build takes 6 to 10 minutes"
	for _, named := range []struct{ by, path string }{{"Plane.Binary", p.Binary}, {"$" + BinaryEnv, os.Getenv(BinaryEnv)}} {
		if named.path == "" {
			continue
		}
		path, err := commandline.Program(named.path)
		if err != nil {
			return "", fmt.Errorf("%s: %w (%s)", named.by, err, hint)
		}
		return path, nil
	}
	self, err := os.Executable()
	if err == nil {
		self, err = commandline.Find(self, "controlplane")
	}
	if err == nil {
		return filepath.Abs(self)
	}
	return "", fmt.Errorf("the program controlplane is missing: set $%s to its path, or put it on PATH (%s)", BinaryEnv, hint)
}
