package promimport

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/stormglass/stormglass/loadgen/internal/scrape"
	"github.com/stormglass/stormglass/loadgen/result"
)

const (
	// polls is how often per scrape interval the recorder queries for new scrapes while it waits at a boundary.
	// pollAtLeast is the maximum time between two such queries.
	polls       = 10
	pollAtLeast = 2 * time.Second
	// copyTimeout is the time limit for the copy at the end of a run.
	copyTimeout = 4 * time.Minute
)

// Recorder records the metrics of a run from a Prometheus server, and scrapes the generator's own metrics. A run uses
// it like a scrape.Recorder.
type Recorder struct {
	source *Source
	own    *scrape.Recorder
	o      scrape.Options

	mu         sync.Mutex
	boundaries []boundaryScrapes
	scrapes    result.Scrapes // counts of the scrapes of the targets
	failed     error          // error of writing the run's archive
}

// boundaryScrapes is a boundary and, for each target, the time of the scrape that the run waited for. `at` is in ms by
// this machine's clock, and `scrapes` in ms by the Prometheus server's clock.
type boundaryScrapes struct {
	at      int64
	scrapes map[key]int64
}

// Record creates the archive in dir, as scrape.Open does. Call Find first. The Recorder scrapes only o.Registry. It
// copies the samples from the Prometheus server that a scrape.Recorder with the same options would keep.
func (s *Source) Record(dir string, o scrape.Options) (*Recorder, error) {
	own, err := scrape.Open(dir, nil, o)
	if err != nil {
		return nil, err
	}
	if o.Log == nil {
		o.Log = func(string, ...any) {}
	}
	return &Recorder{source: s, own: own, o: o, scrapes: result.Scrapes{Failed: map[string]int64{}}}, nil
}

// Own returns the recorder that scrapes the generator's own metrics.
func (r *Recorder) Own() *scrape.Recorder { return r.own }

// Run scrapes the generator until ctx ends. It then copies the samples between the first and the last boundary. Samples
// that cannot be copied count as lost. If writing the archive fails, Close returns the error.
func (r *Recorder) Run(ctx context.Context) error {
	err := r.own.Run(ctx)
	within, cancel := context.WithTimeout(context.WithoutCancel(ctx), copyTimeout)
	defer cancel()
	copied := r.copy(within)
	r.mu.Lock()
	r.failed = copied
	r.mu.Unlock()
	return err
}

// ScrapeNow records the boundary of a phase. It waits until the Prometheus server has scraped each target once more,
// and returns the time after these scrapes. A target that is not scraped in time counts as lost. ScrapeNow returns an
// error only if ctx ends or the samples cannot be stored.
func (r *Recorder) ScrapeNow(ctx context.Context) (time.Time, error) {
	began := r.source.clock()
	asked, err := r.source.now(ctx)
	if err != nil {
		// The Prometheus server may be available again when the samples are copied.
		asked = began.Add(r.source.Ahead())
		r.o.Log("the time of %s could not be read: %s", r.source.url, oneLine(err))
	}
	waited := r.await(ctx, asked.Add(r.source.clock().Sub(began))) // latest possible current time by the Prometheus server's clock
	at, err := r.own.ScrapeNow(ctx)
	if err != nil {
		return at, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.boundaries = append(r.boundaries, boundaryScrapes{at.UnixMilli(), waited})
	return at, nil
}

// await waits until the Prometheus server has scraped each target after the time `asked`, by the Prometheus server's
// clock. It returns the times of these scrapes. It stops waiting after the time at which a missing scrape counts as
// lost.
func (r *Recorder) await(ctx context.Context, asked time.Time) map[key]int64 {
	every := r.source.Interval()
	window := time.Duration(patience*float64(every)) + r.source.ingestion
	ctx, cancel := context.WithTimeout(ctx, window)
	defer cancel()
	tick := time.NewTicker(max(time.Millisecond, min(every/polls, pollAtLeast)))
	defer tick.Stop()
	scrapes := map[key]int64{}
	told := false
	for {
		found, err := r.source.ups(ctx, asked.Add(window), window)
		for _, k := range sortedKeys(found) {
			if ticks := merged(found[k]); scrapes[k] == 0 {
				scrapes[k] = ticks[0].at
			}
		}
		late := r.source.without(scrapes)
		switch {
		case late == "":
			return scrapes
		case ctx.Err() != nil:
			r.o.Log("%s has no samples of %s since %s", r.source.url, late, asked.Format(time.TimeOnly))
			return scrapes
		case err != nil && !told:
			told = true
			r.o.Log("%s does not answer: %s", r.source.url, oneLine(err))
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
		}
	}
}

// without returns the instance of a target that has no entry in scrapes, or "" if all have one.
func (s *Source) without(scrapes map[key]int64) string {
	for _, t := range s.targets {
		if scrapes[t.key] == 0 {
			return t.Instance
		}
	}
	return ""
}

// Scrapes returns the number of scrapes of the generator. After the samples are copied, it also includes the scrapes of
// the targets.
func (r *Recorder) Scrapes() result.Scrapes {
	all := r.own.Scrapes()
	r.mu.Lock()
	defer r.mu.Unlock()
	all.Done += r.scrapes.Done
	for instance, n := range r.scrapes.Failed {
		all.Failed[instance] += n
	}
	return all
}

// Close writes the archive.
func (r *Recorder) Close() error {
	err := r.own.Close()
	r.mu.Lock()
	defer r.mu.Unlock()
	if err == nil && r.failed != nil {
		err = fmt.Errorf("copy from %s: %w", r.source.url, r.failed)
	}
	return err
}
