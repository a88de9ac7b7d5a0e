package result

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/stormglass/stormglass/internal/userfile"
)

// maxSegment is the maximum size of a file in a run directory. The largest files are segments of the Prometheus TSDB,
// with 512 MiB or less.
const maxSegment = 1 << 30

// noDigest is the value of Run.Digest while the digest is computed.
var noDigest = strings.Repeat("0", hex.EncodedLen(sha256.Size))

// judgedFrom reports whether Digest includes name, a file or directory at the top of a run directory. Digest covers the
// files that only the run writes. Judging reads all of these files except the times of a replay.
func judgedFrom(name string) bool {
	switch name {
	case ScenarioFile, TimelineFile, PulseFile, MeasurementsFile, AuditFile, TSDBDir, TracesDir:
		return true
	}
	return strings.HasPrefix(name, ReplayPrefix)
}

// Digest returns the hexadecimal SHA-256 of each file in dir that only the run writes (see judgedFrom), by path. It
// excludes run.json, which contains the digests.
func Digest(dir string) (map[string]string, error) {
	files, err := judgedFiles(dir)
	if err != nil {
		return nil, err
	}
	digests := map[string]string{}
	for _, name := range files {
		if digests[name], err = digestFile(dir, name); err != nil {
			return nil, err
		}
	}
	return digests, nil
}

// judgedFiles lists the files in dir that Digest includes (see judgedFrom). For a directory, it lists all files below it.
func judgedFiles(dir string) (files []string, err error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, userfile.Cause(err)
	}
	for _, e := range entries {
		if judgedFrom(e.Name()) {
			below, err := FilesBelow(dir, e.Name())
			if err != nil {
				return nil, err
			}
			files = append(files, below...)
		}
	}
	return files, nil
}

// deepest is the maximum number of directories above a file of a run, as in tsdb/BLOCK/chunks/000001. This limit also
// stops loops of symbolic links.
const deepest = 3

// FilesBelow returns the paths, relative to dir, of all files at and below name. It follows symbolic links. Each
// returned path is a regular file that can be opened. Every error is a *Damaged.
func FilesBelow(dir, name string) ([]string, error) {
	at := filepath.Join(dir, filepath.FromSlash(name))
	info, err := os.Stat(at)
	if err != nil {
		return nil, &Damaged{name, userfile.Cause(err)}
	}
	if !info.IsDir() {
		if err := userfile.Check(at, maxSegment); err != nil {
			return nil, &Damaged{name, err}
		}
		return []string{name}, nil
	}
	if strings.Count(name, "/") == deepest {
		return nil, &Damaged{name, errors.New("it is a directory, but the directories of a run are not nested that deeply")}
	}
	entries, err := os.ReadDir(at)
	if err != nil {
		return nil, &Damaged{name, userfile.Cause(err)}
	}
	var files []string
	for _, e := range entries {
		below, err := FilesBelow(dir, path.Join(name, e.Name()))
		if err != nil {
			return nil, err
		}
		files = append(files, below...)
	}
	return files, nil
}

func digestFile(dir, name string) (string, error) {
	f, err := userfile.Open(filepath.Join(dir, filepath.FromSlash(name)), maxSegment)
	if err != nil {
		return "", &Damaged{name, err}
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", &Damaged{name, userfile.Cause(err)}
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// Encode returns the content of run.json. Its field digest is the SHA-256 of this content, computed with zeros in the
// field.
func (r Run) Encode() ([]byte, error) {
	r.Digest = noDigest
	data, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("write %s: %w", RunFile, err)
	}
	data = append(data, '\n')
	sum := sha256.Sum256(data)
	return bytes.Replace(data, []byte(noDigest), []byte(hex.EncodeToString(sum[:])), 1), nil
}

// ReadRun reads run.json of the run in dir. Every error is a *Damaged.
func ReadRun(dir string) (Run, error) {
	var r Run
	data, err := ReadFile(dir, RunFile)
	if err != nil {
		return r, err
	}
	if err := Decode(RunFile, data, &r); err != nil {
		return Run{}, err
	}
	switch {
	case r.Digest == "" && len(r.Files) > 0:
		return Run{}, &Damaged{RunFile, errors.New("it was changed after the run: its field `digest`, the SHA-256 of the file, is missing")}
	case r.Digest != "":
		sum := sha256.Sum256(bytes.Replace(data, []byte(r.Digest), []byte(noDigest), 1))
		if r.Digest != hex.EncodeToString(sum[:]) {
			return Run{}, &Damaged{RunFile, errors.New("it was changed after the run: its SHA-256 differs from its field `digest`")}
		}
	}
	return r, nil
}

// Changed compares the files in dir with the digests of the run. The result has a *Damaged for each top-level file or
// directory that was changed, or in which a file was changed, removed or added. The keys are the names of these files
// and directories. The result is empty for a run without digests. If the run was downsampled, Changed uses the digests
// of the downsampled metrics, and ignores the removed parts.
func (r Run) Changed(dir string) map[string]error {
	changed := r.changed(dir)
	if is, err := ReadReduced(dir); err == nil && is.Interval > 0 {
		for _, part := range append([]string{TSDBDir}, is.Removed...) {
			delete(changed, part)
		}
		if err := (Run{Files: is.Files, Ended: is.Time}).changed(dir)[TSDBDir]; err != nil {
			changed[TSDBDir] = err
		}
	}
	return changed
}

func (r Run) changed(dir string) map[string]error {
	changed := map[string]error{}
	note := func(file string, err error) {
		top, _, _ := strings.Cut(file, "/")
		if changed[top] == nil {
			changed[top] = err
		}
	}
	for _, file := range slices.Sorted(maps.Keys(r.Files)) {
		if !filepath.IsLocal(file) {
			continue
		}
		sum, err := digestFile(dir, file)
		if err == nil && sum != r.Files[file] {
			err = &Damaged{file, errors.New("it was changed after the run, because its SHA-256 differs from the recorded value")}
		}
		if err != nil {
			note(file, err)
		}
	}
	if len(r.Files) == 0 || r.Ended.IsZero() {
		return changed // a killed run may have written files after it computed the digests
	}
	there, err := judgedFiles(dir)
	if damaged, ok := errors.AsType[*Damaged](err); ok {
		note(damaged.File, damaged)
	}
	for _, file := range there {
		if r.Files[file] == "" {
			note(file, &Damaged{file, errors.New("the run did not write it")})
		}
	}
	return changed
}

// IsRunDir reports whether dir contains a file that only runs write.
func IsRunDir(dir string) (bool, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return false, userfile.Cause(err)
	}
	return slices.ContainsFunc(entries, func(e fs.DirEntry) bool {
		switch e.Name() {
		case RunFile, TimelineFile, PulseFile, MeasurementsFile, TSDBDir:
			return true
		}
		return false
	}), nil
}
