// Package archivetest records runs for tests. The tests set the values of all metrics.
package archivetest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stormglass/stormglass/controlplane/control"
	"github.com/stormglass/stormglass/loadgen/internal/archive"
	"github.com/stormglass/stormglass/loadgen/internal/rundir"
	"github.com/stormglass/stormglass/loadgen/internal/scrape"
	"github.com/stormglass/stormglass/loadgen/internal/timeline"
	"github.com/stormglass/stormglass/loadgen/result"
)

// Lab is an active recording of a run. Only Boundary moves its clock.
type Lab struct {
	// Parts are the components, by name.
	Parts map[string]*Component

	t        testing.TB
	dir      string
	recorder *scrape.Recorder

	mu  sync.Mutex
	now time.Time
}

// New starts components with the given names, and creates a recorder that scrapes them. The job of a component is its
// name without a trailing number, such as "etcd" for "etcd-0".
func New(t testing.TB, o scrape.Options, names ...string) *Lab {
	t.Helper()
	l := &Lab{t: t, dir: t.TempDir(), Parts: map[string]*Component{}, now: time.UnixMilli(1_800_000_000_000)}
	var targets []control.ScrapeTarget
	for _, name := range names {
		c := NewComponent()
		server := httptest.NewServer(c)
		t.Cleanup(server.Close)
		l.Parts[name] = c
		targets = append(targets, control.ScrapeTarget{Job: strings.TrimRight(name, "-0123456789"), Instance: name, URL: server.URL})
	}
	o.Now = l.Now
	var err error
	if l.recorder, err = scrape.Open(l.dir, targets, o); err != nil {
		t.Fatal(err)
	}
	return l
}

// Boundary moves the clock forward by the duration `after`, scrapes all components, and returns the time of the scrape.
func (l *Lab) Boundary(after time.Duration) time.Time {
	l.t.Helper()
	l.mu.Lock()
	l.now = l.now.Add(after)
	l.mu.Unlock()
	at, err := l.recorder.ScrapeNow(context.Background())
	if err != nil {
		l.t.Fatal(err)
	}
	return at
}

// Phase records a phase of one minute with an additional scrape in the middle. If storm is not nil, it calls storm
// after the first scrape.
func (l *Lab) Phase(name string, storm func()) result.Phase {
	l.t.Helper()
	p := result.Phase{Name: name, Start: l.Boundary(time.Second)}
	if storm != nil {
		storm()
	}
	l.Boundary(30 * time.Second)
	p.End = l.Boundary(30 * time.Second)
	return p
}

// Now returns the time by the Lab's clock.
func (l *Lab) Now() time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.now
}

// Dir returns the directory of the run.
func (l *Lab) Dir() string { return l.dir }

// Recorder returns the recorder. It is open until the first call of Archive or RunDir.
func (l *Lab) Recorder() *scrape.Recorder { return l.recorder }

// Archive ends the recording and returns the archive. The end of the test closes the archive.
func (l *Lab) Archive() *archive.Archive {
	l.t.Helper()
	if err := l.recorder.Close(); err != nil {
		l.t.Fatal(err)
	}
	a, err := archive.Open(l.dir)
	if err != nil {
		l.t.Fatal(err)
	}
	l.t.Cleanup(func() {
		if err := a.Close(); err != nil {
			l.t.Error(err)
		}
	})
	return a
}

// RunDir ends the recording and completes the run directory with a scenario, measurements, a timeline, and run.json
// with the digests of all files. Tests of programs that read run directories use it.
func (l *Lab) RunDir(scenario string, run result.Run, m result.Measurements, events ...result.Event) string {
	l.t.Helper()
	if err := l.recorder.Close(); err != nil {
		l.t.Fatal(err)
	}
	w, err := timeline.Open(l.dir)
	if err != nil {
		l.t.Fatal(err)
	}
	// Write no line break at the end: cutting off any byte at the end must damage the file.
	measured, err := json.Marshal(m)
	errs := []error{
		err, rundir.WriteFile(filepath.Join(l.dir, result.ScenarioFile), []byte(scenario)),
		rundir.WriteFile(filepath.Join(l.dir, result.MeasurementsFile), measured),
	}
	for _, e := range events {
		errs = append(errs, w.Append(e))
	}
	errs = append(errs, w.Close())
	run.Files, err = result.Digest(l.dir)
	if err := errors.Join(append(errs, err, rundir.WriteInfo(l.dir, run))...); err != nil {
		l.t.Fatal(err)
	}
	return l.dir
}

// Component is a fake component. It serves counters, classic histograms and the usual metrics of a process in
// Prometheus' text format. It is safe for concurrent use.
type Component struct {
	mu      sync.Mutex
	started int
	down    bool
	values  map[string]float64 // by series, which is the name with labels
}

// NewComponent returns a component without counters and histograms.
func NewComponent() *Component { return &Component{started: 1000, values: map[string]float64{}} }

// Add adds v to a counter or another cumulative series. series is the name with labels. A new series begins at 0.
func (c *Component) Add(series string, v float64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.values[series] += v
}

// Observe adds n observations of v to a histogram. edges are the upper bounds of its buckets, without +Inf.
func (c *Component) Observe(name, labels string, edges []float64, v, n float64) {
	sep := ""
	if labels != "" {
		sep = ","
	}
	for _, e := range edges {
		hit := 0.0
		if v <= e {
			hit = n
		}
		c.Add(fmt.Sprintf(`%s_bucket{%s%sle="%g"}`, name, labels, sep, e), hit)
	}
	c.Add(fmt.Sprintf(`%s_bucket{%s%sle="+Inf"}`, name, labels, sep), n)
	c.Add(fmt.Sprintf(`%s_count{%s}`, name, labels), n)
	c.Add(fmt.Sprintf(`%s_sum{%s}`, name, labels), n*v)
}

// Restart simulates a restart of the process: its start time increases, and all series disappear.
func (c *Component) Restart() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.started += 1000
	clear(c.values)
}

// SetDown sets whether scrapes of the component fail.
func (c *Component) SetDown(down bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.down = down
}

func (c *Component) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.down {
		http.Error(w, "down", http.StatusServiceUnavailable)
		return
	}
	w.Header().Set("Content-Type", "text/plain; version=0.0.4")
	typed := ""
	var all []string
	for s := range c.values {
		all = append(all, s)
	}
	slices.Sort(all)
	for _, s := range all {
		family, _, _ := strings.Cut(s, "{")
		kind := "counter"
		for _, suffix := range []string{"_bucket", "_count", "_sum"} {
			if f, ok := strings.CutSuffix(family, suffix); ok {
				family, kind = f, "histogram"
			}
		}
		if family != typed {
			typed = family
			fmt.Fprintf(w, "# TYPE %s %s\n", family, kind)
		}
		fmt.Fprintf(w, "%s %g\n", s, c.values[s])
	}
	fmt.Fprintf(w, "# TYPE process_start_time_seconds gauge\nprocess_start_time_seconds %d\n", c.started)
	fmt.Fprint(w, "# TYPE process_resident_memory_bytes gauge\nprocess_resident_memory_bytes 3e8\n# TYPE process_open_fds gauge\nprocess_open_fds 42\n")
}
