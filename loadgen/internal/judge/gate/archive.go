package gate

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/promql"

	"github.com/stormglass/stormglass/loadgen/internal/archive"
	"github.com/stormglass/stormglass/loadgen/internal/judge/alerting"
	"github.com/stormglass/stormglass/loadgen/result"
)

// window is a part of the run for which a gate computes one value.
type window struct {
	name       string
	phases     []string
	start, end time.Time
	missing    string
}

func (w *window) extend(next window) {
	first, _, _ := strings.Cut(w.name, " to ")
	w.name, w.end, w.phases = first+" to "+next.name, next.end, append(w.phases, next.phases...)
}

// windows returns the gate's windows: one for each phase that the gate covers or, if the objective has Spans set, one
// for each sequence of consecutive phases.
func (c Compiled) windows(phases map[string]result.Phase) []window {
	var all []window
	joins := false
	for _, name := range c.order {
		if !slices.Contains(c.Over, name) {
			joins = false
			continue
		}
		p := phases[name]
		w := window{name: name, phases: []string{name}, start: p.Start, end: p.End, missing: lack(name, phases)}
		if c.objective.Spans && joins && w.missing == "" {
			all[len(all)-1].extend(w)
			continue
		}
		joins = w.missing == ""
		all = append(all, w)
	}
	return all
}

// scrapedFinding evaluates the PromQL of the gate over the archive. It fails only if ctx
// ends; any other problem is part of the finding.
func (c Compiled) scrapedFinding(ctx context.Context, a *archive.Archive, phases map[string]result.Phase) (finding, error) {
	f := finding{summed: c.objective.Sums}
	if a == nil {
		f.readings = []reading{{missing: "there is no archive of metrics"}}
		return f, nil
	}
	targets, err := c.targets(ctx, a)
	if err != nil {
		return f, err
	}
	if targets.missing != "" {
		f.readings = []reading{{missing: targets.missing}}
		return f, nil
	}
	for _, w := range c.windows(phases) {
		rs := []reading{{missing: w.missing}}
		if w.missing == "" {
			if rs, err = c.readWindow(ctx, a, w, targets); err != nil {
				return f, err
			}
		}
		for _, r := range rs {
			r.phase, r.of, r.measuredIn = w.name, cmp.Or(r.of, w.name), w.phases
			f.readings = append(f.readings, r)
		}
	}
	return f, nil
}

// targets lists the instances whose metrics a gate reads.
type targets struct {
	instances []string
	missing   string
	// unborn lists metrics that had no series in the whole run.
	unborn []string
}

// targets returns the instances whose metrics the gate reads. For a built-in objective, these are all instances of the
// needed components. For an expression, these are the instances with a series that the expression selects.
func (c Compiled) targets(ctx context.Context, a *archive.Archive) (targets, error) {
	first, last, err := a.Bounds(ctx)
	if err != nil {
		return targets{missing: err.Error()}, ctx.Err()
	}
	var t targets
	for _, job := range c.objective.Needs {
		found, err := a.Instances(ctx, first, last, archive.Equal(model.MetricNameLabel, "up"), archive.Equal("job", job))
		if err != nil {
			return t, err
		}
		if len(found) == 0 {
			return targets{missing: job + " was not scraped"}, nil
		}
		t.instances = append(t.instances, found...)
	}
	for _, selector := range c.reads {
		if c.objective.Name == "expr" {
			// Without this check, an expression with "or vector(0)" would have a value although
			// no target can have counted anything.
			why, err := alerting.WhyNoSeriesFits(ctx, a, first, last, selector)
			if err != nil || why != "" {
				return targets{missing: why}, err
			}
		}
		metric := alerting.MetricOf(selector)
		found, err := a.Instances(ctx, first, last, selector...)
		if err != nil {
			return t, err
		}
		if len(found) == 0 {
			// The metric may have series that the selector does not match. Only a metric
			// without any series was not recorded.
			if found, err = a.Instances(ctx, first, last, archive.Equal(model.MetricNameLabel, metric)); err != nil {
				return t, err
			}
		}
		// A metric may have no series before its first count, although a component certainly exposes it. An expression
		// with several selectors may still have a value then, for example with "or 0 * other".
		unborn := len(found) == 0 && c.objective.Name == "expr" && len(c.reads) > 1 && c.known(metric)
		if unborn && !slices.Contains(t.unborn, metric) {
			t.unborn = append(t.unborn, metric)
		}
		if len(found) == 0 && !unborn {
			return targets{missing: fmt.Sprintf("%s was not recorded: no scraped target exposes it, or record.drop in the scenario excludes it", metric)}, nil
		}
		if c.objective.Needs == nil {
			t.instances = append(t.instances, found...)
		}
	}
	if len(t.instances) == 0 { // no metric had a series in the whole run
		return targets{missing: "none of the metrics was recorded: no scraped target exposes them, or record.drop in the scenario excludes them"}, nil
	}
	slices.Sort(t.instances)
	t.instances = slices.Compact(t.instances)
	return t, nil
}

func (c Compiled) readWindow(ctx context.Context, a *archive.Archive, w window, of targets) ([]reading, error) {
	var targets []fitness
	for _, instance := range of.instances {
		t, err := c.fit(ctx, a, w, instance, nil)
		if err != nil {
			return nil, err
		}
		targets = append(targets, t)
	}
	why, notes, atLeast := c.objective.Gap.gaps(targets, w.name)
	if why != "" {
		return []reading{{missing: why}}, nil
	}
	notes = append(notes, lostNotes(targets, w.name)...)
	if len(of.unborn) > 0 {
		notes = append(notes, strings.Join(of.unborn, ", ")+" had no series yet")
	}
	expr := c.exprAt(w)
	samples, err := a.Instant(ctx, expr, w.end)
	if err != nil {
		return []reading{{missing: err.Error()}}, ctx.Err()
	}
	if c.objective.Name == "expr" && len(samples) > 1 {
		return []reading{{missing: fmt.Sprintf("the expression returns %d series instead of one (aggregate them, for example with max or sum)", len(samples)), alike: true}}, nil
	}
	careful, err := c.cautiousValues(ctx, a, expr, w)
	if err != nil {
		return nil, err
	}
	var readings []reading
	for _, s := range samples {
		r := reading{value: s.V, of: w.name, atLeast: atLeast}
		switch {
		case math.IsNaN(s.V):
			continue
		case math.IsInf(s.V, 0):
			r.missing, r.alike = "the value is infinite", true
		}
		if group := describe(s.Labels); group != "" {
			r.of += ", " + group
		}
		if c.objective.Histogram != nil && r.missing == "" {
			if err := c.explainQuantile(ctx, a, w, s.Labels, &r); err != nil {
				return nil, err
			}
		}
		c.withhold(&r, s.Labels, careful)
		r.detail = withNotes(r.detail, notes)
		readings = append(readings, r)
	}
	if len(readings) == 0 {
		return []reading{{nothing: true, of: w.name}}, nil
	}
	return readings, nil
}

func (c Compiled) exprAt(w window) string {
	return fill(c.objective.Expr, archive.Window(w.start, w.end), max(1, w.end.Sub(w.start).Hours()))
}

func describe(set map[string]string) string {
	var parts []string
	for _, name := range []string{"job", "instance", "verb", "resource", "scope"} {
		if v := set[name]; v != "" {
			parts = append(parts, v)
		}
	}
	return strings.Join(parts, " ")
}

// explainQuantile adds to a reading the number of observations and the bucket that contains the quantile. The last
// bucket has no upper bound: if it contains the quantile, explainQuantile marks the value as a lower bound.
func (c Compiled) explainQuantile(ctx context.Context, a *archive.Archive, w window, group map[string]string, r *reading) error {
	expr := fill(c.objective.Histogram.buckets(), archive.Window(w.start, w.end), 1)
	samples, err := a.Instant(ctx, expr, w.end)
	if err != nil {
		r.missing = err.Error()
		return ctx.Err()
	}
	var buckets promql.Buckets
	for _, s := range samples {
		if sameGroup(s.Labels, group) {
			edge, err := strconv.ParseFloat(s.Labels["le"], 64)
			if err != nil {
				continue
			}
			buckets = append(buckets, promql.Bucket{UpperBound: edge, Count: s.V})
		}
	}
	slices.SortFunc(buckets, func(x, y promql.Bucket) int { return cmp.Compare(x.UpperBound, y.UpperBound) })
	if len(buckets) < 2 {
		return nil
	}
	total := buckets[len(buckets)-1].Count
	low := 0.0
	for _, b := range buckets {
		if b.Count >= c.objective.Histogram.Quantile*total {
			u, q := c.objective.Unit, c.objective.Histogram.Quantile
			seen := fmt.Sprintf("%.0f observations", total)
			if len(c.objective.Needs) == 1 {
				seen += " by " + c.objective.Needs[0]
			}
			if tooFewFor(int64(math.Round(total)), q) {
				seen = "slowest of " + seen
			}
			r.detail = fmt.Sprintf("%s between %s and %s (%s)", quantileName(q), show(u, low), show(u, b.UpperBound), seen)
			if math.IsInf(b.UpperBound, 1) {
				r.atLeast = true
				r.detail = fmt.Sprintf("%s past the last bucket, which ends at %s (%s)", quantileName(q), show(u, low), seen)
			}
			return nil
		}
		low = b.UpperBound
	}
	return nil
}

func sameGroup(bucket, group map[string]string) bool {
	for name, v := range group {
		if bucket[name] != v {
			return false
		}
	}
	return true
}
