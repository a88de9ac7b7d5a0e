package rundir

import "path/filepath"

// Name is the name of a run among others: that of its directory, and for a run in the
// directory of several variants both.
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
