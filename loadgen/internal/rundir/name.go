package rundir

import "path/filepath"

// Name returns the name of a run, which is the name of its directory. For one of several variants, the name of the
// parent directory precedes it, as in PARENT/VARIANT.
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
