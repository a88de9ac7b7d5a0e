package rundir

import "path/filepath"

// Name returns the name of a run: the name of its directory or, for one of several variants, the names of its parent
// directory and of its directory.
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
