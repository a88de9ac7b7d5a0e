package rundir

import "path/filepath"

// Name returns a run's name: the name of its directory, and for one of several
// variants the names of both directories.
func Name(dir, variant string) string {
	if abs, err := filepath.Abs(dir); err == nil {
		dir = abs
	}
	name := filepath.Base(dir)
	if variant != "" && name == variant {
		name = filepath.Base(filepath.Dir(dir)) + "/" + name
	}
	return name
}
