package run

import (
	"context"
	"slices"

	"github.com/stormglass/stormglass/controlplane/control"
	"github.com/stormglass/stormglass/internal/commandline"
	"github.com/stormglass/stormglass/internal/exitcode"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

// placedRelease is a release of Kubernetes or etcd that a control plane starts with or changes to. It has the path of the
// scenario field that names the release.
type placedRelease struct {
	control.Release
	in   *scenario.Scenario
	path string
}

// addRelease appends r to `all`, unless `all` contains that release already.
func addRelease(all []placedRelease, r placedRelease) []placedRelease {
	if slices.ContainsFunc(all, func(p placedRelease) bool { return p.Release == r.Release }) {
		return all
	}
	return append(all, r)
}

// releasesOfMoves returns the releases of the upgrades and downgrades in a scenario, without duplicates.
func releasesOfMoves(s *scenario.Scenario) (all []placedRelease) {
	for _, f := range s.Faults() {
		asked := f.Control(s.Seed)
		to, known := control.ReleaseOf(asked.To)
		if !asked.Moves() || !known {
			continue
		}
		all = addRelease(all, placedRelease{to, s, f.Path + ".to"})
	}
	return all
}

// releasesAtStart returns the releases with which the control plane of a scenario starts, without duplicates.
func releasesAtStart(s *scenario.Scenario) (all []placedRelease) {
	for _, kind := range control.VersionedKinds() {
		for _, r := range s.ControlPlane.ReleasesOf(kind) {
			all = addRelease(all, placedRelease{r, s, "controlPlane"})
		}
	}
	return all
}

// without returns the releases whose programs are missing on this machine, and an error for each. controlplane is the
// path of the controlplane program, which contains the newest release.
func without(ctx context.Context, controlplane string, releases []placedRelease) (missing []placedRelease, why []error) {
	for _, r := range releases {
		if r.Release == control.Newest() { // contained in the controlplane program
			continue
		}
		if _, err := control.FindProgram(ctx, controlplane, r.Release); err != nil {
			missing, why = append(missing, r), append(why, err)
		}
	}
	return missing, why
}

// checkReleases returns an error if a program for an upgrade or downgrade of the run is missing. The control plane
// itself checks the releases with which it starts.
func (o Options) checkReleases(ctx context.Context) error {
	moves := releasesOfMoves(o.Scenario)
	if len(moves) == 0 || !o.startsPlane() {
		return nil
	}
	controlplane, err := controlPlaneProgram(o.ControlPlane)
	if err != nil {
		return err
	}
	missing, why := without(ctx, controlplane, moves)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if len(missing) == 0 {
		return nil
	}
	return exitcode.EnvironmentError(o.Scenario.Errorf(missing[0].path, control.BuildHint(missing[0].Release), "%v", why[0]))
}

// MissingReleases returns a line for each program of another release that is missing on this machine, but that a run of
// the scenario or of a variant needs on a bundled control plane. It returns nothing if the controlplane program is
// missing, because the run reports that.
func MissingReleases(ctx context.Context, s *scenario.Scenario, controlplane string) (lines []string) {
	controlplane, err := controlPlaneProgram(controlplane)
	if err != nil {
		return nil
	}
	var releases []placedRelease
	for _, of := range append([]*scenario.Scenario{s}, s.AllVariants()...) {
		for _, r := range append(releasesAtStart(of), releasesOfMoves(of)...) {
			releases = addRelease(releases, r)
		}
	}
	missing, why := without(ctx, controlplane, releases)
	for i, r := range missing {
		lines = append(lines, r.in.Errorf(r.path, control.BuildHint(r.Release), "%v, which a run on a bundled control plane needs", why[i]).Error())
	}
	return lines
}

// controlPlaneProgram returns the path of the controlplane program: `named` if that is not empty, and otherwise the
// result of FindControlPlane.
func controlPlaneProgram(named string) (string, error) {
	if named == "" {
		return FindControlPlane()
	}
	path, err := commandline.Program(named)
	if err != nil {
		return "", exitcode.Environmentf("--controlplane %w (build bin/controlplane with `make build`)", err)
	}
	return path, nil
}
