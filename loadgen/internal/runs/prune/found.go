package prune

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/stormglass/stormglass/controlplane/control"
	"github.com/stormglass/stormglass/internal/exitcode"
	"github.com/stormglass/stormglass/internal/userfile"
	"github.com/stormglass/stormglass/loadgen/result"
)

// Kind is the kind of an entry of a folder.
type Kind string

// The values of Kind. The empty Kind means that the entry is not a run, comparison or search.
const (
	Run      Kind = "run"
	Variants Kind = "comparison of variants"
	AB       Kind = "A/B comparison"
	Search   Kind = "capacity search"
	Searches Kind = "comparison of capacities"
	Rest     Kind = "rest" // remains of an interrupted prune
)

// Verdicts that only prune uses.
const (
	Interrupted = "interrupted" // the run, comparison or search was interrupted or killed
	NotJudged   = "not judged"  // a run without result.json
)

// Verdicts returns the verdicts that Criteria.Verdicts may contain.
func Verdicts() []string {
	return []string{string(result.Pass), string(result.Fail), string(result.NoData), NotJudged, Interrupted}
}

// Found is an entry of a folder.
type Found struct {
	Folder   string            `json:"folder"`
	Name     string            `json:"name"`
	Kind     Kind              `json:"kind,omitempty"`
	Scenario string            `json:"scenario,omitempty"`
	Started  time.Time         `json:"started,omitzero"`
	Verdicts []string          `json:"verdicts,omitempty"`
	Labels   map[string]string `json:"labels,omitempty"`
	Bytes    int64             `json:"bytes"`
	Alone    string            `json:"-"` // reason why prune must not change the entry, or ""

	contents
}

// restPrefix is the prefix of the name of a directory that is being removed.
const restPrefix = ".pruned-"

// Scan lists the entries of folders. It returns a usage error if a folder is a symbolic link, or belongs to a run or a
// comparison. It reads a folder only once.
func Scan(folders []string) (all []Found, err error) {
	var known []fs.FileInfo
	for _, folder := range folders {
		found, err := scan(folder)
		if err != nil {
			return nil, err
		}
		info, err := os.Stat(folder)
		if err != nil {
			return nil, exitcode.Usagef("%s: %w", folder, userfile.Cause(err))
		}
		if !slices.ContainsFunc(known, func(k fs.FileInfo) bool { return os.SameFile(k, info) }) {
			known, all = append(known, info), append(all, found...)
		}
	}
	return all, nil
}

func scan(folder string) ([]Found, error) {
	if err := checkFolder(folder); err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(folder)
	if err != nil {
		return nil, exitcode.Usagef("%s: %w (name a folder that contains runs)", folder, userfile.Cause(err))
	}
	defer root.Close()
	entries, err := fs.ReadDir(root.FS(), ".")
	if err != nil {
		return nil, exitcode.Usagef("%s: %w", folder, userfile.Cause(err))
	}
	all := make([]Found, 0, len(entries))
	for _, e := range entries {
		f := inspect(root, folder, e.Name())
		if f.Kind != "" && f.Alone == "" {
			f.Alone = active(root, f)
		}
		all = append(all, f)
	}
	return all, nil
}

// checkFolder returns an error if folder cannot be the parent directory of runs.
func checkFolder(folder string) error {
	info, err := os.Lstat(filepath.Clean(folder)) // without the slash that follows a link
	switch {
	case err != nil:
		return exitcode.Usagef("%s: %w (name a folder that contains runs)", folder, userfile.Cause(err))
	case info.Mode()&fs.ModeSymlink != 0:
		return exitcode.Usagef("%s is a symbolic link, which prune does not follow (name the folder itself)", folder)
	case !info.IsDir():
		return exitcode.Usagef("%s is not a directory (name a folder that contains runs)", folder)
	}
	real, err := filepath.EvalSymlinks(folder)
	if err == nil {
		real, err = filepath.Abs(real)
	}
	if err != nil {
		return exitcode.UsageError(err)
	}
	ours, err := result.IsRunDir(real)
	if err != nil {
		return exitcode.Usagef("%s: %w", folder, err)
	}
	if ours || groupIn(real) != "" {
		return exitcode.Usagef("%s is itself a run, comparison or search (name the folder that contains it)", folder)
	}
	if parent := filepath.Dir(real); groupIn(parent) != "" {
		return exitcode.Usagef("%s contains runs of the comparison %s, which are removed only together (name the folder that contains the comparison)", folder, parent)
	}
	return nil
}

// groupIn returns the name of the file in dir that holds the result of a comparison or a search, or "".
func groupIn(dir string) string {
	for _, name := range []string{result.ABFile, result.CapacityFile, result.ComparisonFile} {
		if _, err := os.Lstat(filepath.Join(dir, name)); err == nil {
			return name
		}
	}
	return ""
}

// inspect reads an entry of a folder. It does not check whether a process uses the entry.
func inspect(root *os.Root, folder, name string) Found {
	f := Found{Folder: folder, Name: name}
	info, err := root.Lstat(name)
	switch {
	case err != nil:
		f.Alone = "cannot be read: " + userfile.Cause(err).Error()
	case info.Mode()&fs.ModeSymlink != 0:
		f.Alone = "not a run: it is a symbolic link"
	case !info.IsDir():
		f.Alone = "not a run: it is a file"
	case strings.HasPrefix(name, restPrefix):
		f.Kind, f.dirs = Rest, []string{name}
		f.Bytes, err = size(root, name)
	default:
		err = f.read(root)
	}
	if err != nil {
		f.Alone = err.Error()
	}
	return f
}

// read reads the directory of a unit. The error is the reason why prune must not change the directory.
func (f *Found) read(root *os.Root) error {
	dir := filepath.Join(f.Folder, f.Name)
	group := groupIn(dir)
	ours, err := result.IsRunDir(dir)
	switch {
	case err != nil:
		return fmt.Errorf("cannot be read: %w", err)
	case group != "":
		err = f.readGroup(dir, group)
	case ours:
		err = f.readRun(dir)
	default:
		return fmt.Errorf("not a run: it has no %s", result.RunFile)
	}
	if err != nil {
		return fmt.Errorf("not a whole run: %w", err)
	}
	if f.contents, err = contentsOf(root, *f); err != nil {
		return fmt.Errorf("cannot be read: %w", err)
	}
	f.Bytes = f.contents.bytes
	switch {
	case len(f.foreign) > 0:
		return fmt.Errorf("it has files that a run does not write, such as %s", f.foreign[0])
	case f.left:
		return errors.New("objects of the run may still be in your cluster (`loadgen cleanup` removes them)")
	case f.Kind == Run && !f.measured:
		return errors.New("it is a run of a baseline")
	}
	return nil
}

func (f *Found) readRun(dir string) error {
	run, err := result.ReadRun(dir)
	if err != nil {
		return err
	}
	f.Kind, f.Scenario, f.Started, f.Labels = Run, run.Scenario, run.Started, run.Labels
	var judged struct{ Verdict string }
	switch data, err := result.ReadFile(dir, result.ResultFile); {
	case errors.Is(err, fs.ErrNotExist):
		f.Verdicts = []string{NotJudged}
	case err != nil:
		return err
	case json.Unmarshal(data, &judged) != nil:
		return errors.New(result.ResultFile + " is damaged (`loadgen report` rewrites it)")
	default:
		f.Verdicts = []string{judged.Verdict}
	}
	if run.Interrupted || run.Ended.IsZero() {
		f.Verdicts = append(f.Verdicts, Interrupted)
	}
	return nil
}

func (f *Found) readGroup(dir, file string) error {
	switch file {
	case result.ABFile:
		var c result.AB
		if err := result.ReadJSON(dir, file, &c); err != nil {
			return err
		}
		f.group(AB, c.Scenario, c.Started, c.Ended, c.ExitCode)
		f.Labels = c.Labels
	case result.CapacityFile:
		var c result.Capacity
		if err := result.ReadJSON(dir, file, &c); err != nil {
			return err
		}
		if c.InTurns {
			return errors.New("it is one side of a comparison of two searches")
		}
		f.group(Search, c.Scenario, c.Started, c.Ended, c.ExitCode)
		f.Labels = c.Labels
	default:
		return f.readComparison(dir, file)
	}
	return nil
}

// readComparison reads the result of a comparison of variants, or of two searches. Both files have the same name.
func (f *Found) readComparison(dir, file string) error {
	data, err := result.ReadFile(dir, file)
	if err != nil {
		return err
	}
	var two result.CapacityComparison
	if json.Unmarshal(data, &two) == nil && two.Schema == result.CapacityComparisonSchema {
		a, b := two.Sides[0], two.Sides[1]
		ended := a.Ended
		if b.Ended.IsZero() {
			ended = time.Time{}
		}
		f.group(Searches, a.Scenario, a.Started, ended, two.ExitCode)
		f.Labels = a.Labels
		return nil
	}
	var c result.Comparison
	if err := result.Decode(file, data, &c); err != nil {
		return err
	}
	f.group(Variants, c.Scenario, c.Started, c.Ended, c.ExitCode)
	for _, v := range c.Variants {
		f.variants = append(f.variants, v.Name)
		if run, err := result.ReadRun(filepath.Join(dir, v.Name)); err == nil {
			f.Labels = run.Labels
		}
	}
	return nil
}

func (f *Found) group(kind Kind, scenario string, started, ended time.Time, code int) {
	verdict := map[int]result.Verdict{exitcode.Pass: result.Pass, exitcode.Fail: result.Fail}[code]
	if verdict == "" {
		verdict = result.NoData
	}
	f.Kind, f.Scenario, f.Started, f.Verdicts = kind, scenario, started, []string{string(verdict)}
	if ended.IsZero() {
		f.Verdicts = append(f.Verdicts, Interrupted)
	}
}

// active returns the reason why a process may still use the entry, or "".
func active(root *os.Root, f Found) string {
	unlock, busy, err := lock(root, f.dirs)
	switch {
	case err != nil:
		return "cannot be locked: " + userfile.Cause(err).Error()
	case busy:
		return "it is active: a process uses it"
	}
	defer unlock()
	i := slices.IndexFunc(f.planes, func(plane string) bool {
		used, err := control.InUse(filepath.Join(f.Folder, plane))
		return used || err != nil
	})
	if i >= 0 {
		return "its control plane still runs (`controlplane down` stops it)"
	}
	return ""
}
