package cluster

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/stormglass/stormglass/loadgen/internal/scratch"
	"github.com/stormglass/stormglass/loadgen/result"
)

const (
	// maxRecorded is the maximum size of result.CreatedFile in bytes. It is enough for about 400,000 objects.
	maxRecorded = 64 << 20
	// maxResources is the maximum number of resources in result.CreatedFile. A cleanup lists each of them.
	maxResources = 1000
)

// madeLine is a line of result.CreatedFile: an object that a run created.
type madeLine struct {
	Run      string    `json:"run"`
	Group    string    `json:"group,omitempty"`
	Version  string    `json:"version"`
	Resource string    `json:"resource"`
	Kind     string    `json:"kind"`
	UID      types.UID `json:"uid"`
}

var runIDForm = regexp.MustCompile(`^[0-9a-f]{10}$`)

// Check returns an error if l has values that no run writes. Anyone may have edited the file. The resource becomes part
// of a URL path, and the kind is shown on the terminal.
func (l madeLine) Check() error {
	valid := l.Group == "" || len(validation.IsDNS1123Subdomain(l.Group)) == 0
	for _, word := range []string{l.Version, l.Resource, strings.ToLower(l.Kind), string(l.UID)} {
		valid = valid && len(validation.IsDNS1123Label(word)) == 0
	}
	if !valid || !runIDForm.MatchString(l.Run) {
		return errors.New("it does not name an object that a run created")
	}
	return nil
}

// RecordIn makes the run also record the UIDs of its cluster-scoped objects in a file in dir. If the run is killed,
// ReadLeftovers reads the file. Cleanup removes the file when all objects are gone. Call RecordIn before Setup.
func (t *Target) RecordIn(dir string) error {
	f, err := os.OpenFile(filepath.Join(dir, result.CreatedFile), os.O_CREATE|os.O_EXCL|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return fmt.Errorf("record the objects of the run: %w", err)
	}
	t.made.run, t.made.dir, t.made.file = t.runID, dir, f
	return nil
}

// RecordedIn returns the directory of the file that records the run's objects, or "" if nothing is recorded.
func (t *Target) RecordedIn() string {
	t.made.mu.Lock()
	defer t.made.mu.Unlock()
	if t.made.written == 0 {
		return ""
	}
	return t.made.dir
}

// write appends an object to the file, if any. It does not buffer, so that a killed run loses nothing. It stops after a
// failed write, or when the file has maxRecorded bytes.
func (m *made) write(r schema.GroupVersionResource, kind string, uid types.UID) {
	if m.file == nil {
		return
	}
	line, err := json.Marshal(madeLine{m.run, r.Group, r.Version, r.Resource, kind, uid})
	if m.written += len(line) + 1; err == nil && m.written <= maxRecorded {
		_, err = m.file.Write(append(line, '\n'))
	}
	if err != nil || m.written > maxRecorded {
		m.file.Close()
		m.file = nil
	}
}

// forget removes the file, because the objects that it lists are gone.
func (m *made) forget() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.dir == "" {
		return
	}
	if m.file != nil {
		m.file.Close()
	}
	_ = os.Remove(filepath.Join(m.dir, result.CreatedFile)) // if this fails, a cleanup finds no object in the file
	m.dir, m.file = "", nil
}

// Leftovers selects the objects that a cleanup removes.
type Leftovers struct {
	// Run is the ID of the run that created the objects. Empty means every run.
	Run string
	// Keep are the IDs of the runs whose objects the cleanup keeps.
	Keep []string
	made *made // objects to remove by UID, even without labels; nil: none
}

// ReadLeftovers reads which objects the run in dir created. It fails if a process uses dir.
func ReadLeftovers(dir string) (Leftovers, error) {
	lines, err := result.ReadLines[madeLine](dir, result.CreatedFile)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return Leftovers{}, fmt.Errorf("%s: %w (has the run removed its objects? to remove objects by label, use --run ID)", dir, err)
	case err != nil:
		return Leftovers{}, fmt.Errorf("%s: %w (to remove objects by label, use --run ID)", dir, err)
	case len(lines) == 0:
		return Leftovers{}, fmt.Errorf("%s: %s lists no objects (to remove objects by label, use --run ID)", dir, result.CreatedFile)
	}
	left := Leftovers{Run: lines[0].Run, made: &made{}}
	for i, l := range lines {
		left.made.add(schema.GroupVersionResource{Group: l.Group, Version: l.Version, Resource: l.Resource}, l.Kind, l.UID)
		var wrong error
		switch {
		case l.Run != left.Run:
			wrong = fmt.Errorf("line %d: the object is not from run %s", i+1, left.Run)
		case len(left.made.all) > maxResources:
			wrong = fmt.Errorf("line %d: more than %d resources", i+1, maxResources)
		default:
			continue
		}
		return Leftovers{}, fmt.Errorf("%s: %w", dir, &result.Damaged{File: result.CreatedFile, Err: wrong})
	}
	lock, err := scratch.LockDir(dir)
	if err == nil && lock == nil {
		err = errors.New("another loadgen process uses this directory (wait until that process ends)")
	}
	if err != nil {
		return Leftovers{}, fmt.Errorf("%s: %w", dir, err)
	}
	return left, lock.Close()
}
