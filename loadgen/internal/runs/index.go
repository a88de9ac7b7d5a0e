package runs

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/stormglass/stormglass/internal/exitcode"
	"github.com/stormglass/stormglass/internal/terminal"
	"github.com/stormglass/stormglass/internal/userfile"
	"github.com/stormglass/stormglass/loadgen/result"
)

const (
	// maxDeep is the number of directory levels below a folder in which the index searches.
	maxDeep = 5
	// maxEntries is the maximum number of entries. The index ignores further directories and counts them.
	maxEntries = 20_000
	// maxForeign is the maximum number of directories without a run that the index names.
	maxForeign = 100
	// scanEvery is the minimum time between two scans.
	scanEvery = 2 * time.Second
)

// Index holds the entries of folders. It is safe for concurrent use.
type Index struct {
	folders []folder

	scanning sync.Mutex // held during a scan
	mu       sync.Mutex
	known    map[string]*known // known directories, by path in the index
	foreign  []string
	ignored  int // number of directories beyond maxEntries
	scanned  time.Time
	total    int // number of directories that the current or last scan found
	version  int // increases with each change of the entries
}

// folder is a directory that the user named.
type folder struct{ name, dir string }

// known is an entry and the data with which Scan detects changes of its directory. entry is nil until it was read.
type known struct {
	entry   *Entry
	modTime time.Time
	settled bool
	kind    Kind
	dir     string
	parent  string
	files   map[string]bool
}

// Open returns the index of folders, which are directories of runs or directories that contain such directories. names
// are the names of the folders in paths of entries; a single folder may have an empty name. Open reads no entries.
func Open(dirs, names []string) (*Index, error) {
	x := &Index{known: map[string]*known{}}
	for i, dir := range dirs {
		info, err := os.Stat(dir)
		if err == nil && !info.IsDir() {
			err = errors.New("it is not a directory")
		}
		if err != nil {
			return nil, exitcode.Usagef("%s: %w (name a directory that contains runs)", dir, userfile.Cause(err))
		}
		x.folders = append(x.folders, folder{names[i], dir})
	}
	return x, nil
}

// Scan finds new, changed and removed directories, and reads the new and changed ones, the newest first. It does
// nothing if the last scan ended less than two seconds ago.
func (x *Index) Scan(ctx context.Context) {
	x.scanning.Lock()
	defer x.scanning.Unlock()
	x.mu.Lock()
	recent := time.Since(x.scanned) < scanEvery
	x.mu.Unlock()
	if recent {
		return
	}
	w := walk{found: map[string]*known{}}
	for _, f := range x.folders {
		w.dir(f.name, f.dir, "", 0)
	}
	x.load(ctx, x.merge(w))
	x.mu.Lock()
	x.scanned = time.Now()
	x.mu.Unlock()
}

// walk collects the directories below the folders.
type walk struct {
	found   map[string]*known
	foreign []string
	ignored int
}

// dir adds the directory `at`, whose path in the index is `name`, and the directories below it. It does not follow
// symbolic links, so it never leaves the folder. It reports whether it found an entry.
func (w *walk) dir(name, at, parent string, depth int) (found bool) {
	list, err := os.ReadDir(at)
	if err != nil {
		w.addForeign(cmp.Or(name, baseOf(at)))
		return false
	}
	if depth > 0 && slices.ContainsFunc(list, func(e os.DirEntry) bool { return e.Name() == SiteFile }) {
		return true // copies of runs
	}
	files, dirs := map[string]bool{}, []string{}
	for _, e := range list {
		switch {
		case e.Type().IsRegular() && wanted[e.Name()], e.IsDir() && e.Name() == result.TSDBDir:
			files[e.Name()] = true
		case e.IsDir() && !strings.HasPrefix(e.Name(), "."):
			dirs = append(dirs, e.Name())
		}
	}
	kind := kindOf(files)
	if kind != "" {
		if name == "" { // the folder itself is a comparison
			name = baseOf(at)
		}
		w.add(name, &known{kind: kind, dir: at, parent: parent, files: files})
		if kind == Run {
			return true
		}
		parent = name
	}
	if depth < maxDeep {
		for _, d := range dirs {
			found = w.dir(path.Join(name, d), filepath.Join(at, d), parent, depth+1) || found
		}
	}
	if kind == "" && !found && depth > 0 {
		w.addForeign(name)
	}
	return found || kind != ""
}

// baseOf returns the name of the directory `at`, which may be a relative path such as ".".
func baseOf(at string) string {
	if abs, err := filepath.Abs(at); err == nil {
		at = abs
	}
	return filepath.Base(at)
}

// SiteFile is the name of the file that marks a directory of published pages. The index ignores such a directory.
const SiteFile = ".stormglass-site"

// wanted are the names of the files that the index uses. Some determine the kind of a directory (see kindOf), the others
// are its results and reports.
var wanted = map[string]bool{
	result.ABFile: true, result.ABHTMLFile: true, result.CapacityFile: true, result.CapacityHTMLFile: true, result.ComparisonFile: true, result.ComparisonHTMLFile: true,
	result.RunFile: true, result.ResultFile: true, result.HTMLFile: true, result.TimelineFile: true, result.PulseFile: true, result.MeasurementsFile: true,
}

func (w *walk) add(name string, k *known) {
	info, err := os.Stat(k.dir)
	switch {
	case err != nil: // it was removed in the meantime
	case len(w.found) == maxEntries:
		w.ignored++
	default:
		k.modTime = info.ModTime()
		w.found[name] = k
	}
}

func (w *walk) addForeign(name string) {
	// Only the topmost directory without a run is of interest.
	w.foreign = slices.DeleteFunc(w.foreign, func(f string) bool { return strings.HasPrefix(f, name+"/") })
	if len(w.foreign) < maxForeign {
		w.foreign = append(w.foreign, terminal.Clean(name))
	}
}

// merge replaces the known directories by the found directories. It returns the ones that must be read, the newest
// first.
func (x *Index) merge(w walk) (todo []string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for name, k := range w.found {
		if old := x.known[name]; old != nil && old.entry != nil {
			k.entry = old.entry
			if old.settled && old.kind == k.kind && old.modTime.Equal(k.modTime) {
				k.settled = true
				continue
			}
		}
		todo = append(todo, name)
	}
	for name, old := range x.known {
		if w.found[name] == nil && old.entry != nil {
			x.version++
		}
	}
	slices.SortFunc(todo, func(a, b string) int {
		return cmp.Or(w.found[b].modTime.Compare(w.found[a].modTime), cmp.Compare(b, a))
	})
	x.known, x.foreign, x.ignored, x.total = w.found, w.foreign, w.ignored, len(w.found)
	return todo
}

// load reads the given entries in their order, on all processors.
func (x *Index) load(ctx context.Context, todo []string) {
	next := make(chan string)
	var group sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		group.Go(func() {
			for name := range next {
				x.read(name)
			}
		})
	}
	for _, name := range todo {
		if ctx.Err() != nil {
			break
		}
		next <- name
	}
	close(next)
	group.Wait()
}

func (x *Index) read(name string) {
	x.mu.Lock()
	k := *x.known[name]
	x.mu.Unlock()
	e := &Entry{Path: name, Dir: k.dir, Kind: k.kind, Parent: k.parent, Started: k.modTime}
	settled := read(e, k.files) && !recent(k.modTime) // someone may still copy files to the directory
	if e.Started.IsZero() {
		e.Started = k.modTime
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	old := x.known[name]
	if old.entry == nil || settled || old.entry.State != e.State || old.entry.Verdict != e.Verdict {
		x.version++
	}
	old.entry, old.settled = e, settled
}

// Snapshot is the state of an index at one time.
type Snapshot struct {
	Entries []*Entry // newest first
	// Total is the number of directories, including those that were not read yet.
	Total   int
	Foreign []string // directories without a run
	Ignored int      // number of directories beyond the maximum
	Version int      // increases with each change of the entries
}

// Snapshot returns the entries that were read so far.
func (x *Index) Snapshot() Snapshot {
	x.mu.Lock()
	defer x.mu.Unlock()
	s := Snapshot{Total: x.total, Foreign: slices.Clone(x.foreign), Ignored: x.ignored, Version: x.version}
	for _, k := range x.known {
		if k.entry != nil {
			s.Entries = append(s.Entries, k.entry)
		}
	}
	slices.SortFunc(s.Entries, func(a, b *Entry) int {
		return cmp.Or(b.Started.Compare(a.Started), cmp.Compare(a.Path, b.Path))
	})
	return s
}

// Find returns the entry with the given path, or nil.
func (s Snapshot) Find(name string) *Entry {
	i := slices.IndexFunc(s.Entries, func(e *Entry) bool { return e.Path == name })
	if i < 0 {
		return nil
	}
	return s.Entries[i]
}

// Members returns the entries within a comparison or a search, in the order of their paths.
func (s Snapshot) Members(of string) (all []*Entry) {
	for _, e := range s.Entries {
		if e.Parent == of {
			all = append(all, e)
		}
	}
	slices.SortFunc(all, func(a, b *Entry) int { return cmp.Compare(a.Path, b.Path) })
	return all
}

// OpenFile opens a regular file of an entry for reading. It refuses names of other directories and symbolic links that
// leave the entry's directory.
func (e *Entry) OpenFile(name string) (*os.File, error) {
	root, err := os.OpenRoot(e.Dir)
	if err != nil {
		return nil, userfile.Cause(err)
	}
	defer root.Close()
	f, err := root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0) // do not block if the file is a pipe
	if err != nil {
		return nil, userfile.Cause(err)
	}
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil, errors.Join(err, f.Close(), fs.ErrNotExist)
	}
	return f, nil
}
