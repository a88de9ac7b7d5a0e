package timeline

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/stormglass/stormglass/loadgen/result"
)

// Writer appends events to timeline.jsonl, each synced to disk before Append
// returns, so that the timeline of a killed run is complete up to its last event.
// It is safe for concurrent use.
type Writer struct {
	mu    sync.Mutex
	f     *os.File
	marks *marks
}

// Open opens the timeline of the run in dir, to append to it.
func Open(dir string) (*Writer, error) {
	f, err := os.OpenFile(filepath.Join(dir, result.TimelineFile), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open the timeline: %w", err)
	}
	return &Writer{f: f, marks: newMarks()}, nil
}

// Append writes one event.
func (w *Writer) Append(e result.Event) error {
	w.marks.add(e)
	line, err := json.Marshal(e)
	if err != nil {
		return fmt.Errorf("timeline: %w", err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, err := w.f.Write(append(line, '\n')); err != nil {
		return fmt.Errorf("timeline: %w", err)
	}
	if err := w.f.Sync(); err != nil {
		return fmt.Errorf("timeline: %w", err)
	}
	return nil
}

// Register exposes the phases and faults written so far as metrics.
func (w *Writer) Register(r prometheus.Registerer) error {
	if err := r.Register(w.marks); err != nil {
		return fmt.Errorf("register the timeline's metrics: %w", err)
	}
	return nil
}

// Close closes the file.
func (w *Writer) Close() error { return w.f.Close() }

// Read reads the events of the run in dir. A last line that was cut off, as by a
// kill, is left out. A run that wrote no timeline has no events. Every error is a
// *result.Damaged.
func Read(dir string) ([]result.Event, error) {
	events, err := result.ReadLines[result.Event](dir, result.TimelineFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return events, err
}
