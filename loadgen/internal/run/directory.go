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
	"github.com/stormglass/stormglass/loadgen/internal/rundir"
	"github.com/stormglass/stormglass/loadgen/internal/scratch"
	"github.com/stormglass/stormglass/loadgen/internal/timeline"
	"github.com/stormglass/stormglass/loadgen/result"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

// Directory is the directory of a run, a comparison or a search. The process that uses it holds a lock on it.
type Directory struct {
	Path    string
	made    []string // directories that MakeDirectory created: first Path, then its parents
	resumed bool     // the directory existed before and has measurements
	lock    *os.File // file of the lock; nil if not locked
}

// MakeDirectory creates and locks the directory `out`. If `out` is empty, the directory's name consists of the
// scenario's name and the time.
func MakeDirectory(out, scenario string, now time.Time) (*Directory, error) {
	path, made, err := rundir.Make(out, scenario, now)
	if err != nil {
		return nil, err
	}
	lock, err := scratch.LockDir(path)
	if err != nil {
		return nil, errors.Join(exitcode.Environmentf("--out %s: %w", path, userfile.Cause(err)), rundir.Remove(path, made))
	}
	if lock == nil {
		return nil, exitcode.Usagef("--out %s: another run has just started to use this directory (name a new directory)", out)
	}
	return &Directory{Path: path, made: made, lock: lock}, nil
}

// ResumeDirectory locks the existing directory of a comparison or a search, to continue it. The lock keeps other processes
// from continuing it at the same time.
func ResumeDirectory(dir string) (*Directory, error) {
	lock, err := scratch.LockDir(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist): // the code that reads the directory reports this
	case err != nil:
		return nil, exitcode.Usagef("%s: %w", dir, userfile.Cause(err))
	case lock == nil:
		return nil, exitcode.Usagef("--resume %s: another loadgen process uses this directory (wait until that process ends)", dir)
	}
	return &Directory{Path: dir, resumed: true, lock: lock}, nil
}

// Unlock lets other processes use the directory. On a nil Directory it does nothing.
func (d *Directory) Unlock() {
	if d != nil && d.lock != nil {
		_ = d.lock.Close() // an error loses nothing, because nothing was written
	}
}

// Remove removes the directory with its content, and the parent directories that MakeDirectory created. It does nothing
// if the directory was resumed or d is nil.
func (d *Directory) Remove() error {
	if d == nil || d.resumed {
		return nil
	}
	return rundir.Remove(d.Path, d.made)
}

func (d *Directory) writeScenario(s *scenario.Scenario) (map[string]string, error) {
	files := s.Bundle()
	resolved, err := s.Resolved()
	if err != nil {
		return nil, err
	}
	for name, data := range files {
		if err := rundir.WriteFile(filepath.Join(d.Path, name), data); err != nil {
			return nil, err
		}
	}
	if err := rundir.WriteFile(filepath.Join(d.Path, result.ScenarioFile), resolved); err != nil {
		return nil, err
	}
	digests, err := result.Digest(d.Path)
	return digests, exitcode.EnvironmentError(err)
}

func (d *Directory) plane() string { return filepath.Join(d.Path, planeDir) }

// discard unlocks and removes the directory of a run that failed to start. It keeps the logs of the run's control plane and
// the record of objects that the run left in a cluster.
func (d *Directory) discard() error {
	defer d.Unlock()
	if _, err := os.Stat(filepath.Join(d.plane(), "logs")); err == nil {
		return errors.Join(removeBut(d.Path, planeDir), removeBut(d.plane(), "logs"))
	}
	if left, err := os.Stat(filepath.Join(d.Path, result.CreatedFile)); err == nil && left.Size() > 0 {
		return removeBut(d.Path, result.CreatedFile)
	}
	return d.Remove()
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

// sweep removes what killed processes left: files in the temporary directory of the system and, if dir is not empty,
// the credentials of control planes in run directories that have the same parent as dir.
func (c console) sweep(dir string) {
	for _, path := range scratch.Sweep() {
		c.step("removed %s, which a killed loadgen left behind", path)
	}
	if dir == "" {
		return
	}
	beside, _ := filepath.Glob(filepath.Join(filepath.Dir(dir), "*", planeDir, keyParts()[0]))
	for _, keys := range beside {
		if plane := filepath.Dir(keys); sweepKeys(plane) {
			c.step("removed the credentials in %s, which a killed run left behind", plane)
		}
	}
}

// sweepKeys removes the credentials of a run's control plane, whose directory is plane, unless a process still uses the
// run or the control plane. It reports whether it removed credentials.
func sweepKeys(plane string) bool {
	dir := filepath.Dir(plane)
	if _, err := os.Lstat(filepath.Join(dir, result.RunFile)); err != nil {
		return false // not a run directory
	}
	lock, err := scratch.LockDir(dir)
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

// journal shows steps to the user and records events in the timeline.
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
