package controlplane

import (
	"context"
	"fmt"

	"github.com/stormglass/stormglass/controlplane/control"
	"github.com/stormglass/stormglass/controlplane/internal/observer"
)

type (
	// Observer is a running `loadgen observe`.
	Observer = observer.Observer
	// ObserverOptions say what program observes and where it serves. Observe fills in
	// Dir and Log.
	ObserverOptions = observer.Options
)

// observerLog is the name of the observer's log, beside the components'.
const observerLog = "observer"

// FindLoadgen returns the path of loadgen: beside executable, then on PATH.
func FindLoadgen(executable string) (string, error) { return observer.Find(executable) }

// Observe starts `loadgen observe` on a plane that is ready, and says in cluster.json
// and in the status where it serves. Stop the observer.
func (p *Plane) Observe(ctx context.Context, o ObserverOptions) (*Observer, error) {
	o.Dir, o.Log = p.layout.Dir, LogFile(p.layout.Dir, observerLog)
	w, err := observer.Start(ctx, o)
	if err != nil {
		return nil, err
	}
	if err := p.publishChanged(func(c *control.Cluster) { c.Observe = w.URL() }); err != nil {
		w.Stop()
		return nil, fmt.Errorf("observe: %w", err)
	}
	return w, nil
}
