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

// mostDigested bounds a file that is digested: a segment of the archive has 512 MiB
// at the most.
const mostDigested = 1 << 30

// noDigest stands for Run.Digest while it is computed.
var noDigest = strings.Repeat("0", hex.EncodedLen(sha256.Size))

// judgedFrom tells whether a file at the top of a run's directory is one that judging
// reads, and that only the run writes.
func judgedFrom(name string) bool {
	switch name {
	case ScenarioFile, TimelineFile, PulseFile, MeasurementsFile, AuditFile, TSDBDir:
		return true
	}
	return strings.HasPrefix(name, "replay-")
}

// Digest gives the SHA-256 of each file in dir that judging reads, in hexadecimal, by
// path; run.json, which holds them, is not among them.
func Digest(dir string) (map[string]string, error) {
	digests := map[string]string{}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		if judgedFrom(e.Name()) {
			if err := digestBelow(dir, e.Name(), 0, digests); err != nil {
				return nil, err
			}
		}
	}
	return digests, nil
}

// deepest is the depth of an archive: tsdb/BLOCK/chunks/000001. A loop of links ends
// there.
const deepest = 4

func digestBelow(dir, name string, depth int, into map[string]string) error {
	at := filepath.Join(dir, filepath.FromSlash(name))
	info, err := os.Stat(at)
	if err != nil {
		return &Damaged{name, userfile.Cause(err)}
	}
	if !info.IsDir() {
		sum, err := digestFile(at)
		if err != nil {
			return &Damaged{name, userfile.Cause(err)}
		}
		into[name] = sum
		return nil
	}
	if depth == deepest {
		return &Damaged{name, errors.New("the archive of a run is not that deep")}
	}
	entries, err := os.ReadDir(at)
	if err != nil {
		return &Damaged{name, userfile.Cause(err)}
	}
	for _, e := range entries {
		if err := digestBelow(dir, path.Join(name, e.Name()), depth+1, into); err != nil {
			return err
		}
	}
	return nil
}

func digestFile(at string) (string, error) {
	if err := userfile.Check(at, mostDigested); err != nil {
		return "", err
	}
	f, err := os.Open(at)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// Encode gives run.json, with its own digest in it.
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
	if r.Digest != "" {
		sum := sha256.Sum256(bytes.Replace(data, []byte(r.Digest), []byte(noDigest), 1))
		if r.Digest != hex.EncodeToString(sum[:]) {
			return Run{}, &Damaged{RunFile, errors.New("it was changed after the run: its SHA-256 is not the one in it")}
		}
	}
	return r, nil
}

// Changed gives, by name at the top of the run's directory, what differs there from
// what the run wrote: each a *Damaged. A run without digests has none to differ from.
func (r Run) Changed(dir string) map[string]error {
	changed := map[string]error{}
	note := func(file string, err error) {
		top, _, _ := strings.Cut(file, "/")
		if changed[top] == nil {
			changed[top] = &Damaged{file, err}
		}
	}
	for _, file := range slices.Sorted(maps.Keys(r.Files)) {
		if !filepath.IsLocal(file) {
			continue
		}
		sum, err := digestFile(filepath.Join(dir, filepath.FromSlash(file)))
		switch {
		case err != nil:
			note(file, userfile.Cause(err))
		case sum != r.Files[file]:
			note(file, fmt.Errorf("it was changed after the run: its SHA-256 is not the one in %s", RunFile))
		}
	}
	if len(r.Files) == 0 || r.Ended.IsZero() {
		return changed // a run that was killed wrote on after the digests
	}
	there, err := Digest(dir)
	var damaged *Damaged
	if errors.As(err, &damaged) {
		note(damaged.File, damaged.Err)
	}
	for _, file := range slices.Sorted(maps.Keys(there)) {
		if r.Files[file] == "" {
			note(file, errors.New("the run did not write it"))
		}
	}
	return changed
}

// IsRunDir tells whether there is anything in dir that only a run writes.
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
