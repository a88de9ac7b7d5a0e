package rundir

import "path/filepath"

// Name returns the name of a run for the user, which is the name of its directory. If the run is one of several
// variants, the name is PARENT/VARIANT.
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
