package result

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/common/model"
)

// ReducedFile is the file in a run directory that lists what `loadgen prune --reduce` or `--downsample` removed.
const ReducedFile = "reduced.json"

// ReducedSchema is the version of reduced.json.
const ReducedSchema = "stormglass.reduced/v1"

// Reduced is the content of reduced.json. The results of a reduced run are complete, but it cannot be judged again.
type Reduced struct {
	Schema  string    `json:"schema"`            // always stormglass.reduced/v1
	Time    time.Time `json:"time"`              // when the parts were removed
	Removed []string  `json:"removed,omitempty"` // removed files and directories
	// Interval: seconds between two samples of a series in the downsampled metrics; 0 or missing: not downsampled
	Interval float64 `json:"intervalSeconds,omitempty"`
	// Files: SHA-256 of the files with downsampled metrics, by path
	Files map[string]string `json:"files,omitempty"`
}

// Every returns the time between two samples of a series in downsampled metrics, or 0.
func (r *Reduced) Every() time.Duration { return time.Duration(r.Interval * float64(time.Second)) }

// Check returns an error if no command can have written r.
func (r *Reduced) Check() error {
	switch {
	case r.Schema != ReducedSchema || r.Time.IsZero():
		return fmt.Errorf("it has no time, or its schema is not %q", ReducedSchema)
	case r.Interval < 0 || r.Interval > time.Hour.Seconds() || (r.Interval > 0) != (len(r.Files) > 0):
		return errors.New("its interval is out of bounds, or it has only one of interval and files")
	}
	return nil
}

// ReducedError is the error for a command that needs a part or samples that `loadgen prune` removed.
type ReducedError struct {
	Dir string
	Reduced
}

// Error says what was removed, and names the files that still hold the results.
func (e *ReducedError) Error() string {
	was, flag, removed := "reduced to its results", "--reduce", e.Removed
	if every := model.Duration(e.Every()).String(); e.Interval > 0 {
		was, flag, removed = "downsampled", "--downsample "+every, append(slices.Clone(removed), "all but one sample per "+every)
	}
	return fmt.Sprintf("%s: the run was %s on %s: `loadgen prune %s` removed %s (%s and %s still show the verdict and the measurements)",
		e.Dir, was, e.Time.UTC().Format("2006-01-02"), flag, strings.Join(removed, ", "), ResultFile, HTMLFile)
}

// Unjudged returns true: a reduced run cannot be judged again.
func (e *ReducedError) Unjudged() bool { return true }

// ReadReduced reads reduced.json of the run in dir. It returns the zero value if the run was not reduced.
func ReadReduced(dir string) (r Reduced, err error) {
	if err = ReadJSON(dir, ReducedFile, &r); errors.Is(err, fs.ErrNotExist) {
		return Reduced{}, nil
	}
	return r, err
}

// CheckReduced returns a *ReducedError if the run in dir was reduced or downsampled.
func CheckReduced(dir string) error {
	r, err := ReadReduced(dir)
	switch {
	case err != nil:
		return fmt.Errorf("%s: %w", dir, err)
	case r.Schema == "":
		return nil
	}
	return &ReducedError{dir, r}
}
