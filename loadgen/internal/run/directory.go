package run

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/stormglass/stormglass/controlplane/control"
	"github.com/stormglass/stormglass/internal/exitcode"
	"github.com/stormglass/stormglass/internal/userfile"
	"github.com/stormglass/stormglass/loadgen/internal/cluster"
	"github.com/stormglass/stormglass/loadgen/internal/rundir"
	"github.com/stormglass/stormglass/loadgen/internal/timeline"
	"github.com/stormglass/stormglass/loadgen/result"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

// directory is a run's own directory. Its lock says that the process of the run lives.
type directory struct {
	path string
	made []string // directories made for it, itself first
	lock *os.File
}

func makeDirectory(out, scenario string, now time.Time) (*directory, error) {
	path, made, err := rundir.Make(out, scenario, now)
	if err != nil {
		return nil, err
	}
	lock, err := cluster.LockDir(path)
	if err != nil {
		return nil, errors.Join(exitcode.Environmentf("--out %s: %w", path, userfile.Cause(err)), rundir.Remove(path, made))
	}
	if lock == nil {
		return nil, exitcode.Usagef("--out %s: another run has just taken it (name a new one)", out)
	}
	return &directory{path, made, lock}, nil
}

// Claim locks the directory of a comparison or a search until release: no other process goes on with it meanwhile.
func Claim(dir string) (release func(), err error) {
	lock, err := cluster.LockDir(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist): // who reads it says so
		return func() {}, nil
	case err != nil:
		return nil, exitcode.Usagef("%s: %w", dir, userfile.Cause(err))
	case lock == nil:
		return nil, exitcode.Usagef("--resume %s: another loadgen is at work in it (wait for its end)", dir)
	}
	return func() { _ = lock.Close() }, nil // it was only read
}

func (d *directory) writeScenario(s *scenario.Scenario) (map[string]string, error) {
	resolved, err := s.Resolved()
	if err != nil {
		return nil, err
	}
	files := s.Bundle()
	for name, data := range files {
		if err := rundir.WriteFile(filepath.Join(d.path, name), data); err != nil {
			return nil, err
		}
	}
	if err := rundir.WriteFile(filepath.Join(d.path, result.ScenarioFile), resolved); err != nil {
		return nil, err
	}
	digests, err := result.Digest(d.path)
	return digests, exitcode.EnvironmentError(err)
}

func (d *directory) plane() string { return filepath.Join(d.path, planeDir) }

func (d *directory) unlock() { _ = d.lock.Close() } // it was only read

// discard removes what the run wrote, except the logs of a plane that did not start.
func (d *directory) discard() error {
	defer d.unlock()
	if _, err := os.Stat(filepath.Join(d.plane(), "logs")); err == nil {
		return errors.Join(removeBut(d.path, planeDir), removeBut(d.plane(), "logs"))
	}
	return rundir.Remove(d.path, d.made)
}

func removeBut(dir, keep string) error {
	entries, err := os.ReadDir(dir)
	errs := []error{err}
	for _, e := range entries {
		if e.Name() != keep {
			errs = append(errs, os.RemoveAll(filepath.Join(dir, e.Name())))
		}
	}
	return errors.Join(errs...)
}

// sweep removes the credentials that killed runs left: tokens in the directory for
// temporary files, and keys of bundled planes in the run directories beside dir, if
// that is not empty.
func (c console) sweep(dir string) {
	for _, path := range cluster.Sweep() {
		c.step("removed %s, which a killed run left", path)
	}
	if dir == "" {
		return
	}
	beside, _ := filepath.Glob(filepath.Join(filepath.Dir(dir), "*", planeDir, keyParts()[0]))
	for _, keys := range beside {
		if plane := filepath.Dir(keys); sweepKeys(plane) {
			c.step("removed the keys in %s, which a killed run left", plane)
		}
	}
}

// sweepKeys removes the keys of the plane of a run whose processes are all gone.
func sweepKeys(plane string) bool {
	dir := filepath.Dir(plane)
	if _, err := os.Lstat(filepath.Join(dir, result.RunFile)); err != nil {
		return false // not one of ours
	}
	lock, err := cluster.LockDir(dir)
	if err != nil || lock == nil {
		return false
	}
	defer lock.Close()
	if used, err := control.InUse(plane); err != nil || used {
		return false
	}
	control.RemoveSocketDir(plane)
	return removeParts(plane, keyParts()...) == nil
}

// journal shows steps and records events in the timeline.
type journal struct {
	console
	timeline *timeline.Writer
}

func (j journal) event(at time.Time, kind result.EventKind, name, detail string) {
	j.record(result.Event{Time: at, Kind: kind, Name: name, Detail: detail})
}

func (j journal) record(e result.Event) {
	e.Time = e.Time.UTC()
	if err := j.timeline.Append(e); err != nil {
		j.step("timeline: %v", err)
	}
}
