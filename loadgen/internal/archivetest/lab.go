// Package archivetest gives tests a recorded run over components whose every
// number they know.
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
	"github.com/stormglass/stormglass/loadgen/internal/record"
	"github.com/stormglass/stormglass/loadgen/internal/rundir"
	"github.com/stormglass/stormglass/loadgen/internal/timeline"
	"github.com/stormglass/stormglass/loadgen/result"
)

// Lab is a run that is being recorded, by a clock that only Boundary moves.
type Lab struct {
	// Parts are the components, by name.
	Parts map[string]*Component

	t        testing.TB
	dir      string
	recorder *record.Recorder

	mu  sync.Mutex
	now time.Time
}

// New starts components with such names, "etcd-0" for the first of job "etcd",
// and a recorder of them.
func New(t testing.TB, o record.Options, names ...string) *Lab {
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
	if l.recorder, err = record.Open(l.dir, targets, o); err != nil {
		t.Fatal(err)
	}
	return l
}

// Boundary scrapes all components, so long after the time before, and returns
// the time of that.
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

// Phase records a phase of a minute with a scrape in its middle; storm, if not nil,
// is called before that.
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

// Now is the time by the clock that Boundary moves.
func (l *Lab) Now() time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.now
}

// Dir is the directory of the run.
func (l *Lab) Dir() string { return l.dir }

// Recorder returns the recorder, which runs until Archive.
func (l *Lab) Recorder() *record.Recorder { return l.recorder }

// Archive ends the recording and opens what it wrote, until the test ends.
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

// RunDir ends the recording and makes a run's directory of it, with a scenario, what
// else a run leaves behind and the digests of it all: what reads directories can be
// tested on it.
func (l *Lab) RunDir(scenario string, run result.Run, m result.Measurements, events ...result.Event) string {
	l.t.Helper()
	if err := l.recorder.Close(); err != nil {
		l.t.Fatal(err)
	}
	w, err := timeline.Open(l.dir)
	if err != nil {
		l.t.Fatal(err)
	}
	// Without a line break at the end: each byte that is cut off damages it.
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

// Component exposes counters and classic histograms as Prometheus' text, and
// what every Go process says of itself. It is safe for concurrent use.
type Component struct {
	mu      sync.Mutex
	started int
	down    bool
	values  map[string]float64 // by series
}

// NewComponent is one that has counted nothing yet. It serves its metrics.
func NewComponent() *Component { return &Component{started: 1000, values: map[string]float64{}} }

// Add adds to a cumulative series, which begins at zero.
func (c *Component) Add(series string, v float64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.values[series] += v
}

// Observe adds n observations of v to a histogram with buckets up to edges, and
// one for all.
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

// Restart makes it another process, with its counters at zero.
func (c *Component) Restart() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.started += 1000
	clear(c.values)
}

// SetDown makes scrapes fail, or succeed again.
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
