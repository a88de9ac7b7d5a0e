package web

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/stormglass/stormglass/loadgen/internal/archive"
	"github.com/stormglass/stormglass/loadgen/internal/judge/gate"
	"github.com/stormglass/stormglass/loadgen/internal/judge/recovery"
	"github.com/stormglass/stormglass/loadgen/internal/plan"
	"github.com/stormglass/stormglass/loadgen/internal/report"
	"github.com/stormglass/stormglass/loadgen/internal/report/chart"
	"github.com/stormglass/stormglass/loadgen/internal/run"
	"github.com/stormglass/stormglass/loadgen/internal/rundir"
	"github.com/stormglass/stormglass/loadgen/internal/samples"
	"github.com/stormglass/stormglass/loadgen/internal/timeline"
	"github.com/stormglass/stormglass/loadgen/result"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

// pageEvery, minRest and maxRest limit how often the page is created. The generator's own process creates it, so
// this must take little time: at most once per pageEvery, and at most 1/minRest of the time. If creating the page is
// slow, maxRest limits the pause that results from this rule.
const (
	pageEvery = 3 * time.Second
	minRest   = 50
	maxRest   = 15 * time.Second
)

// pages caches the page of the run.
type pages struct {
	making sync.Mutex // held while a page is being created

	mu      sync.Mutex
	text    []byte
	version int
	fresh   time.Time // when the cached page becomes too old
}

// next returns the version of the page that get would return.
func (p *pages) next() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	if time.Now().Before(p.fresh) {
		return p.version
	}
	return p.version + 1
}

// get returns the cached page and its version. If the page is too old, get calls write to create a new one.
func (p *pages) get(write func() ([]byte, error)) (text []byte, version int, err error) {
	p.making.Lock()
	defer p.making.Unlock()
	if p.next() != p.version {
		began := time.Now()
		made, err := write()
		if err != nil {
			return nil, 0, err
		}
		now := time.Now()
		p.mu.Lock()
		p.text, p.version, p.fresh = made, p.version+1, now.Add(min(max(pageEvery, minRest*now.Sub(began)), maxRest))
		p.mu.Unlock()
	}
	return p.text, p.version, nil
}

func (s *Server) servePage(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	n := s.snapshot
	s.mu.Unlock()
	text, version, err := s.pages.get(func() ([]byte, error) { return s.write(r.Context(), n) })
	if err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Page-Version", strconv.Itoa(version))
	_, _ = w.Write(text) // an error means that the browser is gone
}

// write creates the page from the data that the run has recorded so far.
func (s *Server) write(ctx context.Context, n run.Snapshot) (page []byte, err error) {
	l := report.Live{Word: strings.ToLower(word(n)), Headline: headline(n), Starting: n.Dir == ""}
	err = s.control.Recorded(ctx, func(ctx context.Context, a *archive.Archive) error {
		page, err = Page(ctx, n.Dir, n.Scenario, a, l)
		return err
	})
	return page, err
}

// Page returns the page of the active run in dir, as if the run had ended now. An empty dir means that the run has
// recorded nothing yet. a holds the metrics that were recorded so far; it may be nil. Page sets the gates of l.
func Page(ctx context.Context, dir, scenario string, a *archive.Archive, l report.Live) (page []byte, err error) {
	rec, text := &rundir.Recorded{}, []byte(nil)
	if dir != "" {
		if rec, text, err = read(dir, time.Now().UTC()); err != nil {
			return nil, err
		}
	}
	r := result.Result{Run: rec.Run, Measurements: rec.Measurements}
	r.Run.Scenario = cmp.Or(r.Run.Scenario, scenario)
	if rec.Scenario != nil {
		r.Recovery = recovery.Analyse(rec)
		if l.Gates, err = gate.Pending(plan.Of(rec.Scenario)); err != nil {
			return nil, err
		}
	}
	var src chart.Source
	if a != nil {
		src = a.Even(rec.Interval)
	}
	var b bytes.Buffer
	err = report.LiveHTML(ctx, &b, r, rec.Timeline, rec.Slots, text, src, l)
	return b.Bytes(), err
}

// headline describes the progress of the run in one line.
func headline(n run.Snapshot) string {
	phase := phaseOf(n)
	switch {
	case n.Failure != "":
		return "The environment failed: " + n.Failure
	case len(n.Phases) == 0:
		return "The control plane and the nodes are starting."
	case phase != "" && n.Gates > 0:
		return fmt.Sprintf("Phase %s is running. The gates are judged at the end.", phase)
	case phase != "":
		return fmt.Sprintf("Phase %s is running.", phase)
	}
	return "No phase is running."
}

// read reads the files that a run has written so far, as if the run had ended at the time `now`.
func read(dir string, now time.Time) (*rundir.Recorded, []byte, error) {
	rec := &rundir.Recorded{Dir: dir}
	var err error
	if rec.Run, err = result.ReadRun(dir); err != nil {
		return nil, nil, err
	}
	rec.Run.Ended = now
	err = result.ReadJSON(dir, result.MeasurementsFile, &rec.Measurements)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, nil, err
	}
	text, err := result.ReadFile(dir, result.ScenarioFile)
	if err == nil {
		rec.Scenario, err = scenario.ParseRecorded(filepath.Join(dir, result.ScenarioFile), text)
	}
	if err == nil {
		rec.Timeline, err = timeline.Read(dir)
	}
	if err == nil {
		rec.Slots, err = samples.Read(dir)
	}
	if err != nil {
		return nil, nil, err
	}
	rec.Measurements.Phases = append(rec.Measurements.Phases, unmeasured(rec.Measurements.Phases, rec.Timeline, now)...)
	return rec, text, nil
}

// unmeasured returns the phases in the timeline that have no measurements yet. Only the last phase, which is in
// progress or has just ended, can be one of them.
func unmeasured(measured []result.Phase, events []result.Event, now time.Time) (more []result.Phase) {
	known := map[string]bool{}
	for _, p := range measured {
		known[p.Name] = true
	}
	for _, e := range events {
		switch {
		case known[e.Name]:
		case e.Kind == result.EventPhaseStart:
			more = append(more, result.Phase{Name: e.Name, Start: e.Time, End: now})
		case e.Kind == result.EventPhaseEnd && len(more) > 0 && more[len(more)-1].Name == e.Name:
			more[len(more)-1].End = e.Time
		}
	}
	return more
}
