package scrape

import (
	"context"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/stormglass/stormglass/controlplane/control"
	"github.com/stormglass/stormglass/loadgen/internal/archive"
)

// stub is a component with a /metrics endpoint that serves what the test sets.
type stub struct {
	*httptest.Server
	mu   sync.Mutex
	text string
	code int
	seen chan struct{} // one for each scrape
}

func newStub(t testing.TB) *stub {
	t.Helper()
	s := &stub{code: http.StatusOK, seen: make(chan struct{}, 1000)}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		s.mu.Lock()
		defer s.mu.Unlock()
		w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
		w.WriteHeader(s.code)
		fmt.Fprint(w, s.text)
		s.seen <- struct{}{}
	}))
	t.Cleanup(s.Close)
	return s
}

// says sets the exposition of a process that started at the given second.
func (s *stub) says(started int, text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.code = http.StatusOK
	s.text = fmt.Sprintf("%s# TYPE process_start_time_seconds gauge\nprocess_start_time_seconds %d\n", text, started)
}

func (s *stub) fails() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.code = http.StatusServiceUnavailable
}

func (s *stub) target(job string) control.ScrapeTarget {
	return control.ScrapeTarget{Job: job, Instance: job + "-0", URL: s.URL + "/metrics"}
}

// clock is a clock that moves only when the test moves it.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func newClock() *clock { return &clock{now: time.UnixMilli(1_800_000_000_000)} }

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) forward(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// bench is a recorder over stubs, with its own clock.
type bench struct {
	t   testing.TB
	dir string
	*clock
	*Recorder
}

func newBench(t testing.TB, o Options, targets ...control.ScrapeTarget) *bench {
	t.Helper()
	b := &bench{t: t, dir: t.TempDir(), clock: newClock()}
	o.Now = b.Now
	var err error
	if b.Recorder, err = Open(b.dir, targets, o); err != nil {
		t.Fatal(err)
	}
	return b
}

// scrape moves the clock and scrapes everything.
func (b *bench) scrape(after time.Duration) time.Time {
	b.t.Helper()
	b.forward(after)
	at, err := b.ScrapeNow(context.Background())
	if err != nil {
		b.t.Fatal(err)
	}
	return at
}

// archive closes the recorder and opens what it wrote.
func (b *bench) archive() *archive.Archive {
	b.t.Helper()
	if err := b.Close(); err != nil {
		b.t.Fatal(err)
	}
	return openArchive(b.t, b.dir)
}

func openArchive(t testing.TB, dir string) *archive.Archive {
	t.Helper()
	a, err := archive.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := a.Close(); err != nil {
			t.Error(err)
		}
	})
	return a
}

// valueOf evaluates an expression with one value. It returns NaN if there is no
// value.
func valueOf(t testing.TB, a *archive.Archive, expr string, at time.Time) float64 {
	t.Helper()
	samples, err := a.Instant(context.Background(), expr, at)
	if err != nil {
		t.Fatal(err)
	}
	if len(samples) == 0 {
		return math.NaN()
	}
	if len(samples) > 1 {
		t.Fatalf("%s: %d series", expr, len(samples))
	}
	return samples[0].V
}
