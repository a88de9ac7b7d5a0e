package rundir

import (
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/stormglass/stormglass/internal/atomicfile"
	"github.com/stormglass/stormglass/internal/exitcode"
	"github.com/stormglass/stormglass/internal/userfile"
	"github.com/stormglass/stormglass/loadgen/result"
)

// Make creates the directory of one run: out or, if out is empty, a directory in ./runs whose name is the time and the
// scenario. If out exists, it must be empty, because a run never overwrites another run. made lists the directories
// that Make created, the run's own directory first.
func Make(out, scenario string, now time.Time) (dir string, made []string, err error) {
	if out == "" {
		return makeDefaultRunDir(filepath.Join("runs", now.UTC().Format("20060102-150405")+"-"+scenario))
	}
	if dir, err = filepath.Abs(out); err != nil {
		return "", nil, exitcode.Usagef("--out %s: %w", out, err)
	}
	entries, err := os.ReadDir(dir)
	switch {
	case err == nil && len(entries) > 0:
		return "", nil, exitcode.Usagef("--out %s: the directory is not empty (name a new directory; a run is never overwritten)", out)
	case err == nil:
		if err := unix.Access(dir, unix.W_OK|unix.X_OK); err != nil {
			return "", nil, exitcode.Usagef("--out %s: %w (%s)", out, err, DiskHint(err))
		}
		return dir, nil, nil
	case !errors.Is(err, fs.ErrNotExist):
		return "", nil, exitcode.Usagef("--out %s: %w (name a directory that can be created)", out, userfile.Cause(err))
	}
	if made, err = makeDir(dir); err != nil {
		return "", nil, exitcode.Usagef("--out %s: cannot create the run directory: %w (%s)", out, userfile.Cause(err), DiskHint(err))
	}
	return dir, made, nil
}

// maxAlike is the maximum number of runs of a scenario that may start in the same second with the same working
// directory.
const maxAlike = 1000

// makeDefaultRunDir creates the directory of a run without --out. If name exists, because several runs started in the same
// second, the directory is NAME-2, NAME-3 and so on.
func makeDefaultRunDir(name string) (dir string, made []string, err error) {
	for n := 1; n <= maxAlike; n++ {
		try := name
		if n > 1 {
			try = fmt.Sprintf("%s-%d", name, n)
		}
		if dir, err = filepath.Abs(try); err == nil {
			made, err = makeDir(dir)
		}
		if !errors.Is(err, fs.ErrExist) {
			break
		}
	}
	if err != nil {
		return "", nil, exitcode.Usagef("cannot create the run directory %s: %w (%s)", name, userfile.Cause(err), DiskHint(err))
	}
	return dir, made, nil
}

// makeDir creates dir, which must not exist, and its missing parents. made lists the created directories, dir first.
func makeDir(dir string) (made []string, err error) {
	for at := dir; at != filepath.Dir(at); at = filepath.Dir(at) {
		if _, err := os.Lstat(at); err == nil {
			break
		}
		made = append(made, at)
	}
	if err = os.MkdirAll(filepath.Dir(dir), 0o700); err == nil {
		err = os.Mkdir(dir, 0o700) // unlike MkdirAll, Mkdir fails if another run has just created it
	}
	if err != nil {
		if len(made) > 1 {
			RemoveMade(made[1:])
		}
		return nil, err
	}
	return made, nil
}

// Remove removes the contents of a run directory, and the directories in made.
func Remove(dir string, made []string) error {
	entries, err := os.ReadDir(dir)
	errs := []error{err}
	for _, e := range entries {
		errs = append(errs, os.RemoveAll(filepath.Join(dir, e.Name())))
	}
	RemoveMade(made)
	return errors.Join(errs...)
}

// RemoveMade removes the directories in made. Subdirectories must precede their parents. It keeps directories that are
// not empty, because another run may use them.
func RemoveMade(made []string) {
	for _, dir := range made {
		_ = os.Remove(dir)
	}
}

// NewID returns a random id for a run: 10 hexadecimal digits, which are valid in Kubernetes names.
func NewID() (string, error) {
	b := make([]byte, 5)
	if _, err := rand.Read(b); err != nil {
		return "", fmt.Errorf("generate a run ID: %w", err)
	}
	return hex.EncodeToString(b), nil
}

// WriteFile writes a file atomically: readers see either the old or the new contents.
func WriteFile(path string, data []byte) error {
	if err := atomicfile.Write(path, data); err != nil {
		return exitcode.Environmentf("write %s: %w (%s)", path, userfile.Cause(err), DiskHint(err))
	}
	return nil
}

// WriteJSON writes v, as indented JSON, to a file in the run directory dir.
func WriteJSON(dir, name string, v any) error {
	data, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	return WriteFile(filepath.Join(dir, name), append(data, '\n'))
}

// WriteInfo writes run, the description of the run, to run.json in dir.
func WriteInfo(dir string, run result.Run) error {
	data, err := run.Encode()
	if err != nil {
		return err
	}
	return WriteFile(filepath.Join(dir, result.RunFile), data)
}

// DiskHint returns a hint for the user about err, an error of writing to a run directory.
func DiskHint(err error) string {
	switch {
	case errors.Is(err, syscall.ENOSPC):
		return "free some space, or name a directory on another disk with --out"
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS):
		return "name a writable directory with --out"
	}
	return "name another directory with --out"
}
