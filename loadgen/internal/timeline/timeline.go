package timeline

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"github.com/stormglass/stormglass/loadgen/result"
)

// Timeline appends events to timeline.jsonl, each synced to disk before Append
// returns, so that the story of a killed run can be told up to its last event.
// It is safe for concurrent use.
type Timeline struct {
	mu    sync.Mutex
	f     *os.File
	marks *marks
}

// OpenTimeline opens the timeline of the run in dir, to append to it.
func OpenTimeline(dir string) (*Timeline, error) {
	f, err := os.OpenFile(filepath.Join(dir, result.TimelineFile), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open the timeline: %w", err)
	}
	return &Timeline{f: f, marks: newMarks()}, nil
}

// Append writes one event.
func (t *Timeline) Append(e result.Event) error {
	t.marks.note(e)
	line, err := json.Marshal(e)
	if err != nil {
		return fmt.Errorf("timeline: %w", err)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, err := t.f.Write(append(line, '\n')); err != nil {
		return fmt.Errorf("timeline: %w", err)
	}
	if err := t.f.Sync(); err != nil {
		return fmt.Errorf("timeline: %w", err)
	}
	return nil
}

// Close closes the file.
func (t *Timeline) Close() error { return t.f.Close() }

// ReadTimeline reads the events of the run in dir. A last line that was cut off, as
// by a kill, is left out. A run that wrote no timeline has no events. Every error is
// a *result.Damaged.
func ReadTimeline(dir string) ([]result.Event, error) {
	events, err := result.ReadLines[result.Event](dir, result.TimelineFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return events, err
}
