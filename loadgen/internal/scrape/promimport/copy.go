package promimport

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/storage"

	"github.com/stormglass/stormglass/loadgen/internal/archive"
	"github.com/stormglass/stormglass/loadgen/internal/scrape"
)

// chunk is the maximum time range of one query. In five minutes, an API server with 30,000 series that is scraped twice
// a minute has 300,000 samples, or about 20 MB.
const chunk = 5 * time.Minute

// copy copies the samples between the first and the last boundary into the archive. It counts a missing scrape as
// failed. It returns an error only if it cannot write the archive.
func (r *Recorder) copy(ctx context.Context) error {
	r.mu.Lock()
	boundaries := r.boundaries
	r.mu.Unlock()
	if len(boundaries) == 0 {
		return nil
	}
	last := boundaries[len(boundaries)-1].at
	to := time.UnixMilli(last + r.source.ahead).Add(time.Second) // the difference between the clocks is approximate
	window := time.Duration(last-boundaries[0].at)*time.Millisecond + time.Duration(patience*float64(r.source.Interval())) + 2*time.Second
	found, err := r.source.ups(ctx, to, window)
	if err != nil {
		r.o.Log("cannot copy metrics from %s: %s", r.source.url, oneLine(err))
	}
	types, err := r.source.types(ctx)
	if err != nil {
		r.o.Log("%s does not return the types of its metrics: %s", r.source.url, oneLine(err)) // most types follow from the names
	}
	for _, t := range r.source.withNew(found) {
		var of []boundary
		for _, b := range boundaries {
			of = append(of, boundary{b.at, b.scrapes[t.key]})
		}
		c := copier{
			Recorder: r, target: t, types: types, series: map[string]*copied{},
			moments: moments(merged(found[t.key]), of, r.source.ahead, t.Interval),
		}
		if err := c.run(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (s *Source) types(ctx context.Context) (map[string]model.MetricType, error) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	all, err := s.api.Metadata(ctx, "", "")
	known := map[string]model.MetricType{}
	for family, said := range all {
		for _, m := range said {
			known[family] = model.MetricType(m.Type)
		}
	}
	return known, err
}

// withNew returns the targets of the Source and the targets that appeared during the run. If a target appeared during a
// phase, gates on the target have no data for this phase, because the target has no scrape at the start of the phase.
func (s *Source) withNew(found map[key][]history) []Target {
	all := slices.Clone(s.targets)
	known := map[key]bool{}
	taken := map[string]bool{}
	for _, t := range s.targets {
		known[t.key], taken[t.Instance] = true, true
	}
	for _, k := range sortedKeys(found) {
		if known[k] {
			continue
		}
		t := s.target(k, found[k], taken[k.instance])
		taken[t.Instance] = true
		all = append(all, t)
	}
	return all
}

// merged returns the scrapes of a target in chronological order. A target has several histories if one of its other
// labels changed, such as the name of its pod.
func merged(all []history) []tick {
	var ticks []tick
	for _, h := range all {
		ticks = append(ticks, h.ticks...)
	}
	slices.SortFunc(ticks, func(a, b tick) int { return cmp.Compare(a.at, b.at) })
	return ticks
}

type copier struct {
	*Recorder
	target  Target
	types   map[string]model.MetricType
	moments []moment

	series map[string]*copied // series of the target, by their labels in the Prometheus server
	before before
}

// copied is the state of one series while its samples are copied.
type copied struct {
	past
	labels labels.Labels // labels of the series in the archive
	counts bool          // whether the series is cumulative
	round  int           // number of the latest query that returned the series, counted from 1
}

func (c *copier) run(ctx context.Context) error {
	pattern, dropped := scrape.Names(c.target.Job, c.o.Extra, c.o.Drop)
	var failed error
	for round, part := range parts(c.moments) {
		matrix, err := c.fetch(ctx, part, pattern)
		if err != nil {
			if failed == nil {
				failed = err
			}
			for i := range part {
				part[i].up = false
			}
		}
		if err := c.store(ctx, part, matrix, dropped, round+1); err != nil {
			return err
		}
	}
	if failed != nil {
		c.o.Log("%s did not return all samples of %s: %s", c.source.url, c.target.Instance, oneLine(failed))
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, m := range c.moments {
		c.scrapes.Done++
		if !m.up {
			c.scrapes.Failed[c.target.Instance]++
		}
	}
	return nil
}

// parts divides the moments (scrapes of one target) into parts that are each copied with one query. Moments that refer
// to the same scrape stay in one part.
func parts(moments []moment) [][]moment {
	var all [][]moment
	begin := 0
	for i, m := range moments {
		if m.at-moments[begin].at > chunk.Milliseconds() && m.of != moments[i-1].of {
			all, begin = append(all, moments[begin:i]), i
		}
	}
	if len(moments) > 0 {
		all = append(all, moments[begin:])
	}
	return all
}

// fetch queries the samples and the durations of all scrapes in a part.
func (c *copier) fetch(ctx context.Context, part []moment, pattern string) (model.Matrix, error) {
	var first, last int64
	for _, m := range part {
		if m.of != 0 {
			if first == 0 {
				first = m.of
			}
			last = m.of
		}
	}
	if last == 0 {
		return nil, nil // nothing was scraped
	}
	return c.source.samples(ctx, time.UnixMilli(last), time.Duration(last-first+1)*time.Millisecond,
		archive.Equal("job", c.target.key.job), archive.Equal("instance", c.target.key.instance),
		labels.MustNewMatcher(labels.MatchRegexp, model.MetricNameLabel, pattern+"|"+scrapeDuration))
}

// scrapeDuration is the metric that Prometheus stores for each scrape, in addition to up.
const scrapeDuration = "scrape_duration_seconds"

func (c *copier) store(ctx context.Context, part []moment, matrix model.Matrix, dropped func(string) bool, round int) error {
	app := c.own.Live().AppenderV2(ctx)
	add := func(l labels.Labels, points []point) error {
		var ref storage.SeriesRef
		for _, p := range points {
			var err error
			if ref, err = app.Append(ref, l, 0, p.at, p.v, nil, nil, storage.AOptions{}); err != nil {
				return fmt.Errorf("store a sample of %s: %w", c.target.Instance, err)
			}
		}
		return nil
	}
	if err := c.each(part, matrix, dropped, round, add); err != nil {
		return errors.Join(err, app.Rollback())
	}
	return app.Commit()
}

// each calls add with the labels and samples of each series in a part.
func (c *copier) each(part []moment, matrix model.Matrix, dropped func(string) bool, round int, add func(labels.Labels, []point) error) error {
	seconds := map[int64]float64{} // durations of the scrapes, by their time in the Prometheus server
	for _, s := range matrix {
		if s.Metric[model.MetricNameLabel] == scrapeDuration {
			for _, p := range s.Values {
				seconds[int64(p.Timestamp)] = float64(p.Value)
			}
		}
	}
	var ups, took []point
	for _, m := range part {
		v := 0.0
		if m.up {
			v = 1
		}
		ups = append(ups, point{m.at, v})
		if v, known := seconds[m.of]; known {
			took = append(took, point{m.at, v})
		} else { // a missing scrape has no duration, not a short one
			took = append(took, point{m.at, math.Float64frombits(value.StaleNaN)})
		}
	}
	ofTarget := func(name string) labels.Labels {
		return labels.FromStrings(model.MetricNameLabel, name, "job", c.target.Job, "instance", c.target.Instance)
	}
	if err := add(ofTarget("up"), ups); err != nil {
		return err
	}
	if !dropped(scrapeDuration) {
		if err := add(ofTarget(scrapeDuration), took); err != nil {
			return err
		}
	}
	started := started(part, matrix)
	for _, s := range matrix {
		name, key := string(s.Metric[model.MetricNameLabel]), s.Metric.String()
		if name == "up" || name == scrapeDuration || dropped(name) {
			continue
		}
		known := c.series[key]
		if known == nil {
			known = &copied{labels: c.archived(s.Metric), counts: counts(name, c.types)}
			c.series[key] = known
		}
		known.round = round
		if err := add(known.labels, place(s.Values, part, started, c.before, &known.past, known.counts)); err != nil {
			return err
		}
	}
	for _, known := range c.series {
		if known.round != round && known.present { // no scrape of this part has the series
			known.present = false
			if err := add(known.labels, []point{{part[0].at, math.Float64frombits(value.StaleNaN)}}); err != nil {
				return err
			}
		}
	}
	c.before = before{part[len(part)-1], started[len(part)-1]}
	return nil
}

// started returns the start time of the target's process at each moment, in seconds since 1970, or 0 if unknown.
func started(part []moment, matrix model.Matrix) []float64 {
	all := make([]float64, len(part))
	for _, s := range matrix {
		if s.Metric[model.MetricNameLabel] != "process_start_time_seconds" {
			continue
		}
		for _, p := range place(s.Values, part, all, before{}, &past{}, false) {
			i, _ := slices.BinarySearchFunc(part, p.at, func(m moment, at int64) int { return cmp.Compare(m.at, at) })
			if !value.IsStaleNaN(p.v) {
				all[i] = p.v
			}
		}
	}
	return all
}

// archived returns the labels of a series in the archive: as in the Prometheus server, but with Stormglass's job and
// instance names.
func (c *copier) archived(m model.Metric) labels.Labels {
	b := labels.NewScratchBuilder(len(m))
	for name, v := range m {
		switch name {
		case model.JobLabel:
			v = model.LabelValue(c.target.Job)
		case model.InstanceLabel:
			v = model.LabelValue(c.target.Instance)
		}
		b.Add(string(name), string(v))
	}
	b.Sort()
	return b.Labels()
}
