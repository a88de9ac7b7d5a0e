// Package archivetest gives tests a recorded run over components whose every
// number they know.
package archivetest

import (
	"context"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stormglass/stormglass/controlplane/control"
	"github.com/stormglass/stormglass/loadgen/internal/archive"
	"github.com/stormglass/stormglass/loadgen/internal/record"
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
