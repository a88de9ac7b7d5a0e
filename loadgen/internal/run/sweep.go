package run

import (
	"os"
	"path/filepath"

	"github.com/stormglass/stormglass/controlplane/control"
	"github.com/stormglass/stormglass/loadgen/internal/cluster"
	"github.com/stormglass/stormglass/loadgen/result"
)

// sweep removes the credentials that killed runs left: tokens in the directory for
// temporary files, and keys of bundled planes in the run directories beside this
// one.
func (r *run) sweep() {
	for _, path := range cluster.Sweep() {
		r.step("removed %s, which a killed run left", path)
	}
	if r.dir == "" {
		return
	}
	beside, _ := filepath.Glob(filepath.Join(filepath.Dir(r.dir), "*", planeDir, keyParts()[0]))
	for _, keys := range beside {
		dir := filepath.Dir(filepath.Dir(keys))
		if sweepKeys(dir) {
			r.step("removed the keys in %s, which a killed run left", filepath.Join(dir, planeDir))
		}
	}
}

// sweepKeys removes the keys of the plane of a run whose processes are all gone.
func sweepKeys(dir string) bool {
	if _, err := os.Lstat(filepath.Join(dir, result.RunFile)); err != nil {
		return false // not one of ours
	}
	lock, err := cluster.LockDir(dir)
	if err != nil || lock == nil {
		return false
	}
	defer lock.Close()
	plane := filepath.Join(dir, planeDir)
	if used, err := control.InUse(plane); err != nil || used {
		return false
	}
	if _, err := os.Lstat(plane); err != nil {
		return false
	}
	control.RemoveSocketDir(plane)
	return removeParts(plane, keyParts()) == nil
}

// unlock says that the run directory is at rest.
func (r *run) unlock() {
	if r.lock != nil {
		_ = r.lock.Close() // it was only read
	}
}
