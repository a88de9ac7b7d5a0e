package rundir

import "path/filepath"

// Name returns the name of a run as shown to users: the name of its directory, or PARENT/VARIANT for the run of a variant.
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
