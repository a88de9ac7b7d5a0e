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
	"github.com/stormglass/stormglass/loadgen/internal/cluster"
)

// startWithin bounds each step of the start; seconds are enough on a machine that is not overloaded.
const startWithin = 2 * time.Minute

// Main starts the plane, runs the package's tests, stops the plane and returns the exit code. It
// returns 1 when the plane does not start, and prints why.
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
	cluster.Sweep() // of planes whose tests were killed
	scratch, err := cluster.TestScratch()
	if err != nil {
		return 0, fmt.Errorf("make a directory for the control plane: %w", err)
	}
	defer func() { err = errors.Join(err, scratch.Remove()) }()
	ctx, cancel := context.WithTimeout(context.Background(), startWithin)
	defer cancel()
	p.running, err = control.Start(ctx, control.StartOptions{Binary: binary, Dir: filepath.Join(scratch.Path, "plane"), Config: &p.ControlPlane})
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
		return fmt.Errorf("the control plane did not end in order: %w", err)
	}
	return nil
}

// find returns the path of the program controlplane.
func (p *Plane) find() (string, error) {
	const hint = "`make build` in a checkout of Stormglass makes bin/controlplane, in 6 to 10 minutes the first time"
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
	return "", fmt.Errorf("no program controlplane: name it by $%s, or put it on PATH (%s)", BinaryEnv, hint)
}
