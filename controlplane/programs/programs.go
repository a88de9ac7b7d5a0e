// Package programs holds the programs that the controlplane binary runs when it is executed under another name: the
// components of a control plane, its services and tools, and the process that keeps a disk busy. It links Kubernetes
// and etcd.
package programs

import (
	"errors"
	"io"

	"github.com/stormglass/stormglass/controlplane/control"
	"github.com/stormglass/stormglass/controlplane/internal/component"
	"github.com/stormglass/stormglass/controlplane/internal/fault/disk"
	"github.com/stormglass/stormglass/controlplane/internal/fault/fsync"
	"github.com/stormglass/stormglass/controlplane/internal/process"
	"github.com/stormglass/stormglass/controlplane/internal/service"
)

// Prepare sets up this process as its environment variables request: the process ends with its parent, gets its limit
// of open files, and starts its fsync agent.
func Prepare() error {
	if err := process.DieWithParent(); err != nil {
		return err
	}
	return errors.Join(process.LimitDescriptors(), fsync.StartAgent())
}

// Main runs the program with the given name. ok is false if the name is unknown.
func Main(name string, args []string, stdout, stderr io.Writer) (code int, ok bool) {
	if name == disk.Program {
		return disk.Main(args, stdout, stderr), true
	}
	if code, ok := service.Main(name, args, stderr); ok {
		return code, true
	}
	program, ok := component.Lookup(name)
	if !ok {
		return 0, false
	}
	return program(args), true
}

// Check checks the settings of a kind of component. It constructs the component's command, so call it only once in a
// process (see package component).
func Check(kind string, ask control.Check) (control.Checked, error) {
	return component.Check(kind, ask)
}
