package controlplane

import (
	"context"

	"github.com/stormglass/stormglass/controlplane/internal/observer"
	"github.com/stormglass/stormglass/controlplane/internal/topology"
)

// Defaults are the components' own values of flags that a config does not set, by
// component and flag.
type Defaults = topology.Defaults

// ConfigFile is where the plane in dir keeps its config.
func ConfigFile(dir string) string { return topology.Layout{Dir: dir}.Config() }

// LogFile is the log of a component, or of the supervisor, of the plane in dir.
func LogFile(dir, name string) string { return topology.Layout{Dir: dir}.Log(name) }

type (
	// Observer is a running `loadgen observe`.
	Observer = observer.Observer
	// ObserverOptions say what it observes, and where it serves.
	ObserverOptions = observer.Options
)

// FindLoadgen returns the path of loadgen: beside executable, then on PATH.
func FindLoadgen(executable string) (string, error) { return observer.Find(executable) }

// StartObserver starts `loadgen observe` on a plane that is up.
func StartObserver(ctx context.Context, o ObserverOptions) (*Observer, error) {
	return observer.Start(ctx, o)
}
