package controlplane

import (
	"context"

	"github.com/stormglass/stormglass/controlplane/fault"
)

// sweep takes out of a resumed plane's data what a fault has left there because
// the supervisor was killed before it could undo it.
func (p *Plane) sweep(ctx context.Context) error {
	if !p.dir.resumed {
		return nil
	}
	removed, err := fault.Sweep(ctx, p.Kubeconfig())
	for _, name := range removed {
		p.progress("%-26s removed: a fault had left it", name)
	}
	return err
}
