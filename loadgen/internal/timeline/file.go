package timeline

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/stormglass/stormglass/internal/bools"
	"github.com/stormglass/stormglass/loadgen/result"
)

// Writer appends events to timeline.jsonl. Append syncs each event to disk before it returns. The timeline of a killed
// run therefore contains all events up to the kill. A Writer is safe for concurrent use.
type Writer struct {
	mu    sync.Mutex
	f     *os.File
	marks *marks
}

// Open opens the timeline of the run in dir for appending.
func Open(dir string) (*Writer, error) {
	f, err := os.OpenFile(filepath.Join(dir, result.TimelineFile), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open the timeline: %w", err)
	}
	return &Writer{f: f, marks: &marks{phases: map[string]bool{}}}, nil
}

// Append writes one event to the timeline.
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

// Register registers metrics that show the phases and faults in the written events.
func (w *Writer) Register(r prometheus.Registerer) error {
	if err := r.Register(w.marks); err != nil {
		return fmt.Errorf("register the timeline's metrics: %w", err)
	}
	return nil
}

// InForce returns the faults that, according to the written events, are still active.
func (w *Writer) InForce() (all []Fault) {
	w.marks.mu.Lock()
	defer w.marks.mu.Unlock()
	for _, f := range w.marks.faults.all {
		if f.End == nil {
			all = append(all, f)
		}
	}
	return all
}

// Close closes the file.
func (w *Writer) Close() error { return w.f.Close() }

// Read reads the events of the run in dir. If the file does not exist, Read returns no events. It skips an incomplete
// last line, which a killed run may leave. Every error is a *result.Damaged.
func Read(dir string) ([]result.Event, error) {
	events, err := result.ReadLines[result.Event](dir, result.TimelineFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return events, err
}

// onNodes is the value of the label "on" for faults of simulated nodes, which affect no component.
const onNodes = "nodes"

// marks exports the phases and faults of a timeline as metrics, for Grafana dashboards. A fault without a duration,
// such as a kill, is never active during a scrape. Only the metric for the start of faults shows it.
type marks struct {
	mu     sync.Mutex
	phases map[string]bool // whether the phase is active, by its name
	faults faults
}

func (m *marks) add(e result.Event) {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch e.Kind {
	case result.EventPhaseStart:
		m.phases[e.Name] = true
	case result.EventPhaseEnd:
		m.phases[e.Name] = false
	}
	m.faults.add(e)
}

var (
	phaseDesc = prometheus.NewDesc("stormglass_phase_active", "1 while the phase is running, 0 after it.", []string{"phase"}, nil)
	faultDesc = prometheus.NewDesc("stormglass_fault_active", "1 while a fault of this kind is active on these components, 0 after it.", []string{"fault", "on"}, nil)
	beginDesc = prometheus.NewDesc("stormglass_fault_begin_timestamp_seconds", "When the last fault of this kind on these components began, in Unix time.", []string{"fault", "on"}, nil)
)

// Describe implements prometheus.Collector.
func (m *marks) Describe(out chan<- *prometheus.Desc) {
	out <- phaseDesc
	out <- faultDesc
	out <- beginDesc
}

// Collect implements prometheus.Collector.
func (m *marks) Collect(out chan<- prometheus.Metric) {
	m.mu.Lock()
	defer m.mu.Unlock()
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	for name, active := range m.phases {
		gauge(phaseDesc, float64(bools.Int(active)), name)
	}
	type labels struct{ fault, on string }
	begins, active := map[labels]time.Time{}, map[labels]bool{}
	for _, f := range m.faults.all {
		of := labels{f.Kind, onNodes}
		if !f.ofNodes() {
			of.on = strings.Join(slices.Sorted(slices.Values(f.On)), ",")
		}
		begins[of], active[of] = f.Begin, active[of] || f.End == nil
	}
	for of, at := range begins {
		gauge(faultDesc, float64(bools.Int(active[of])), of.fault, of.on)
		gauge(beginDesc, float64(at.UnixMilli())/1000, of.fault, of.on)
	}
}
