package controlplane

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/stormglass/stormglass/controlplane/control"
	"github.com/stormglass/stormglass/controlplane/internal/topology"
	"github.com/stormglass/stormglass/internal/version"
)

// findProgram returns the controlplane program that contains the components of release r: the program at the path
// `executable` if r is linked into this program, otherwise the program that control.FindProgram finds.
func findProgram(ctx context.Context, executable string, r control.Release) (control.Program, error) {
	if r == control.Linked() {
		return control.Program{Path: executable, Revision: version.Revision()}, nil
	}
	return control.FindProgram(ctx, executable, r)
}

// stale returns a warning if a program was built from another revision than this program (`own`). It returns "" if the
// revisions are the same or `own` is "" (unknown).
func stale(p control.Program, own string, r control.Release) string {
	if own == "" || p.Revision == own {
		return ""
	}
	from := "an unknown revision"
	if p.Revision != "" {
		from = "revision " + p.Revision
	}
	return fmt.Sprintf("%s was built from %s, but this program was built from %s: they may be incompatible (%s)", p.Path, from, own, control.BuildHint(r))
}

func releasesIn(cfg control.Config) []control.Release {
	return slices.DeleteFunc(control.Releases(), func(r control.Release) bool {
		return !slices.ContainsFunc(control.VersionedKinds(), func(kind string) bool { return slices.Contains(cfg.ReleasesOf(kind), r) })
	})
}

// linkRelease creates links to the programs of a release in the plane's directory.
func (p *Plane) linkRelease(ctx context.Context, r control.Release) error {
	program, err := findProgram(ctx, p.opts.Executable, r)
	if err != nil {
		return fmt.Errorf("%w (%s)", err, control.BuildHint(r))
	}
	if doubt := stale(program, version.Revision(), r); doubt != "" {
		p.progress("warning: %s", doubt)
	}
	if err := os.MkdirAll(p.layout.BinOf(r), 0o700); err != nil {
		return err
	}
	for _, kind := range control.VersionedKinds() {
		if err := link(p.layout.ProgramOf(r, kind), program.Path); err != nil {
			return err
		}
	}
	return nil
}

// config returns the plane's current config. It differs from the initial config after faults that move components to
// other releases.
func (p *Plane) config() control.Config {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.opts.Config
}

// The following methods of fault.Host move a component to another release.

func (h *faultHost) ReleaseAvailable(ctx context.Context, r control.Release) error {
	_, err := findProgram(ctx, h.plane.opts.Executable, r)
	return err
}

func (h *faultHost) LinkRelease(ctx context.Context, r control.Release) error {
	return h.plane.linkRelease(ctx, r)
}

func (h *faultHost) Move(name string, to control.Release) error {
	p := h.plane
	cfg := p.config().InRelease(name, to)
	plan, err := topology.Build(cfg, p.layout, lastPorts(p.layout.Dir), p.opts.Defaults)
	if err != nil {
		return err
	}
	for _, proc := range plan.Processes {
		if proc.Name != name {
			continue
		}
		if err := p.components.Replace(proc); err != nil {
			return err
		}
		p.mu.Lock()
		p.opts.Config = cfg // only one move is active at a time
		p.mu.Unlock()
		return errors.Join(writeJSON(p.layout.Config(), cfg), p.publishChanged(func(c *control.Cluster) { c.Deviations = plan.Deviations }))
	}
	return fmt.Errorf("this control plane has no %s", name)
}

// fitsRelease returns an error if the etcd version of a member is older than the version that wrote the member's data.
func fitsRelease(last, now control.Config) error {
	for _, name := range now.ComponentsOf(control.KindEtcd) {
		was, is := last.ReleaseOf(name), now.ReleaseOf(name)
		if is.OlderThan(was, control.KindEtcd) {
			return fmt.Errorf("the data of %s was written by etcd %s, and the older etcd %s may be unable to read it (keep the version with versions: {etcd: %q}, or start with the previous settings and run: controlplane fault downgrade)",
				name, was.Etcd, is.Etcd, was.Minor)
		}
	}
	return nil
}
