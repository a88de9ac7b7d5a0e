package prune

import (
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/stormglass/stormglass/loadgen/result"
)

// These are directories of a run that no other package defines.
const (
	planeDir   = "controlplane"
	workersDir = "workers"
	scrapeDir  = "prometheus"
)

// newDir is the directory that holds the downsampled metrics until they replace the metrics of the run.
const newDir = ".downsampled"

// heavy returns the directories that reducing removes from a run.
func heavy() []string {
	return []string{result.TSDBDir, result.TracesDir, result.ProfileDir, planeDir}
}

// contents describes the files of a unit (a run, or a comparison or search with its runs), relative to the folder.
type contents struct {
	dirs     []string // directories that a process locks while it uses them
	runs     []reducible
	planes   []string // directories of control planes
	variants []string // names of the variants of a comparison
	foreign  []string // files that no run writes
	measured bool     // whether the unit has measurements, not only the results of a run
	left     bool     // whether a run lists objects that it left in a user's cluster

	bytes int64
}

// reducible is a run that can be reduced.
type reducible struct {
	dir           string
	metrics, rest int64         // bytes of the metrics, and of the other parts that reducing removes
	interval      time.Duration // time between two samples if the run was downsampled
	unfinished    bool          // whether a prune was interrupted while it downsampled the run
}

// canBe reports whether the run can be reduced or, if the interval is not 0, downsampled to the interval.
func (r reducible) canBe(interval time.Duration) bool {
	return interval == 0 || r.metrics > 0 && r.interval < interval
}

// frees returns the maximum number of bytes that downsampling to the interval frees. With interval 0, it returns the bytes
// that reducing frees.
func (c contents) frees(interval time.Duration) (bytes int64) {
	for _, r := range c.runs {
		if r.canBe(interval) {
			bytes += r.metrics + r.rest
		}
	}
	return bytes
}

func (c contents) unfinished() bool {
	return slices.ContainsFunc(c.runs, func(r reducible) bool { return r.unfinished })
}

// contentsOf reads the names and sizes of all files of a unit (a run, or a comparison or search with its runs).
func contentsOf(root *os.Root, f Found) (contents, error) {
	w := walker{root: root, folder: f.Folder}
	var err error
	switch f.Kind {
	case Run:
		err = w.run(f.Name)
	case AB:
		pairs := func(dir string) error { return w.group(dir, nil, isPair, w.run) }
		err = w.group(f.Name, []string{result.ABFile, result.ABHTMLFile, result.JUnitFile}, isSide, pairs)
	case Search:
		err = w.search(f.Name)
	case Searches:
		err = w.group(f.Name, []string{result.CapacityComparisonFile}, isSide, w.search)
	case Variants:
		isVariant := func(name string) bool { return slices.Contains(f.variants, name) }
		err = w.group(f.Name, []string{result.ComparisonFile, result.ComparisonHTMLFile, result.JUnitFile}, isVariant, w.run)
	}
	w.variants = f.variants
	return w.contents, err
}

// These functions match the names of the directories in comparisons and searches.
var (
	isSide  = regexp.MustCompile(`^[ab]$`).MatchString
	isPair  = regexp.MustCompile(`^[0-9]{2,}$`).MatchString
	isTrial = regexp.MustCompile(`^trial-[0-9]{2,}$`).MatchString
)

// walker collects the contents of a unit.
type walker struct {
	root   *os.Root
	folder string
	contents
}

func (w *walker) search(dir string) error {
	return w.group(dir, []string{result.CapacityFile, result.CapacityHTMLFile, result.JUnitFile}, isTrial, w.run)
}

// group reads the directory of a comparison or search. This directory may contain the given files, and subdirectories
// whose names match isSub. group calls sub for each of these subdirectories.
func (w *walker) group(dir string, files []string, isSub func(name string) bool, sub func(dir string) error) error {
	w.dirs, w.measured = append(w.dirs, dir), true
	entries, err := fs.ReadDir(w.root.FS(), dir)
	for _, e := range entries {
		at := path.Join(dir, e.Name())
		switch {
		case err != nil:
		case e.IsDir() && isSub(e.Name()):
			err = sub(at)
		default:
			err = w.file(at, e, !e.IsDir() && (slices.Contains(files, e.Name()) || isUnfinished(e.Name())))
		}
	}
	return err
}

// run reads the directory of a run.
func (w *walker) run(dir string) error {
	w.dirs = append(w.dirs, dir)
	at := filepath.Join(w.folder, dir)
	run, err := result.ReadRun(at)
	ours := wrote{Run: run, whole: err == nil && !run.Ended.IsZero()}
	if ours.reduced, err = result.ReadReduced(at); err != nil {
		return err
	}
	_, err = w.root.Lstat(path.Join(dir, newDir))
	ours.unfinished = err == nil
	found, judged := reducible{dir: dir, interval: ours.reduced.Every(), unfinished: ours.unfinished}, false
	err = fs.WalkDir(w.root.FS(), dir, func(name string, e fs.DirEntry, err error) error {
		rel := strings.TrimPrefix(name, dir+"/")
		if err != nil || name == dir {
			return err
		}
		top, _, _ := strings.Cut(rel, "/")
		switch rel {
		case result.ResultFile:
			judged = true
		case result.TimelineFile, result.MeasurementsFile, result.TSDBDir:
			w.measured = true
		case planeDir:
			w.planes = append(w.planes, name)
		}
		if e.IsDir() && rel != top {
			return nil // only its files matter
		}
		size := w.bytes
		err = w.file(name, e, ours.has(top, rel, e.IsDir()))
		switch {
		case top == result.TSDBDir || top == newDir:
			found.metrics += w.bytes - size
		case slices.Contains(heavy(), top):
			found.rest += w.bytes - size
		}
		if rel == result.CreatedFile && w.bytes > size {
			w.left = true
		}
		return err
	})
	if found.unfinished || judged && found.metrics+found.rest > 0 {
		w.runs = append(w.runs, found)
	}
	return err
}

// file adds a file to the contents. `ours` means that a run, comparison or search wrote it.
func (w *walker) file(name string, e fs.DirEntry, ours bool) error {
	info, err := e.Info()
	if err != nil {
		return err
	}
	if !ours || !info.IsDir() && !info.Mode().IsRegular() {
		w.foreign = append(w.foreign, name)
	}
	if info.Mode().IsRegular() {
		w.bytes += info.Size()
	}
	return nil
}

// wrote identifies the files that a run wrote.
type wrote struct {
	result.Run
	reduced    result.Reduced
	whole      bool // whether Run lists all files of the run
	unfinished bool // whether reduced may list newer metrics than the run has, because a prune was interrupted
}

// has reports whether the run wrote the file rel. top is the first part of rel.
func (r wrote) has(top, rel string, isDir bool) bool {
	known := func(listed bool) bool { return isDir || !r.whole || len(r.Files) == 0 || listed }
	switch top {
	case result.RunFile, result.ScenarioFile, result.MeasurementsFile, result.TimelineFile, result.PulseFile, result.AuditFile,
		result.CreatedFile, result.ResultFile, result.JUnitFile, result.HTMLFile, result.ReducedFile:
		return !isDir
	case result.TSDBDir, result.TracesDir:
		listed := r.Files[rel] != "" || r.reduced.Files[rel] != "" || r.unfinished
		return (isDir || rel != top) && known(listed)
	case result.ProfileDir:
		return known(slices.ContainsFunc(r.Profiles, func(p result.Profile) bool { return p.File == rel }))
	case result.HookDir:
		return known(slices.ContainsFunc(r.Hooks, func(h result.Hook) bool { return h.Output == rel }))
	case planeDir, workersDir, scrapeDir, newDir:
		return isDir || rel != top
	}
	_, listed := r.Files[rel]
	bundled := strings.HasPrefix(top, result.ReplayPrefix) && known(listed) || isRecording(top)
	return !isDir && (bundled || isUnfinished(top))
}

var (
	isRecording  = regexp.MustCompile(`^recording-.*-[0-9a-f]{8}\.jsonl$`).MatchString
	isUnfinished = regexp.MustCompile(`^\.[a-z]+\.(json|jsonl|xml|html|yaml)-[0-9]+$`).MatchString // matches unfinished files of a killed process
)

// size returns the size of all files in a directory.
func size(root *os.Root, dir string) (bytes int64, err error) {
	err = fs.WalkDir(root.FS(), dir, func(_ string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return err
		}
		info, err := e.Info()
		if err == nil {
			bytes += info.Size()
		}
		return err
	})
	return bytes, err
}
