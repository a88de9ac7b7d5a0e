package result

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"time"
)

// ReducedFile is the file in a run directory that lists the parts that `loadgen prune --reduce` removed.
const ReducedFile = "reduced.json"

// ReducedSchema is the version of reduced.json.
const ReducedSchema = "stormglass.reduced/v1"

// Reduced is the content of reduced.json. The results of a reduced run are complete, but it cannot be judged again.
type Reduced struct {
	Schema  string    `json:"schema"`  // stormglass.reduced/v1
	Time    time.Time `json:"time"`    // when the parts were removed
	Removed []string  `json:"removed"` // removed files and directories
}

// Check returns an error if no command writes r.
func (r *Reduced) Check() error {
	if r.Schema != ReducedSchema || r.Time.IsZero() {
		return fmt.Errorf("it has no time, or its schema is not %q", ReducedSchema)
	}
	return nil
}

// ReducedError is the error for a command that needs a part that `loadgen prune --reduce` removed.
type ReducedError struct {
	Dir string
	Reduced
}

// Error names the removed parts and the files that still hold the results.
func (e *ReducedError) Error() string {
	return fmt.Sprintf("%s: the run was reduced to its results on %s: `loadgen prune --reduce` removed %s (%s and %s still show the verdict and the measurements)",
		e.Dir, e.Time.UTC().Format("2006-01-02"), strings.Join(e.Removed, ", "), ResultFile, HTMLFile)
}

// Unjudged returns true: a reduced run cannot be judged again.
func (e *ReducedError) Unjudged() bool { return true }

// CheckReduced returns a *ReducedError if the run in dir was reduced.
func CheckReduced(dir string) error {
	r := &ReducedError{Dir: dir}
	err := ReadJSON(dir, ReducedFile, &r.Reduced)
	switch {
	case err == nil:
		return r
	case errors.Is(err, fs.ErrNotExist):
		return nil
	}
	return fmt.Errorf("%s: %w", dir, err)
}
