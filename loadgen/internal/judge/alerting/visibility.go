package alerting

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"

	"github.com/stormglass/stormglass/internal/metricnames"
	"github.com/stormglass/stormglass/loadgen/internal/archive"
)

// Visibility says which recorded data an alert reads, and whether the alert could have fired on that data.
type Visibility struct {
	// Blind is the reason why the alert could never fire, or "" if it could.
	Blind string
	// Unborn lists metrics that the alert reads and that had no series in the whole run, such as a
	// counter before its first event.
	Unborn []string
	// Instances lists the instances whose metrics the alert reads, sorted. It excludes an instance if the alert reads
	// only its metric up, because such an alert is about failed scrapes.
	Instances []string
}

// Known returns a function that reports whether some component certainly exposes a metric. A metric is known if the
// rules of package alerts read it, because a test checks these metrics against the components' source code. If such a
// metric has no series, it had nothing to count. Metrics in drop are not known, because the recorder dropped them.
func Known(drop []string) func(metric string) bool {
	known := map[string]bool{}
	for _, f := range metricnames.For(metricnames.Rules) {
		if slices.Contains(drop, f.Name) {
			continue
		}
		known[f.Name] = true
		for _, suffix := range []string{"_bucket", "_sum", "_count"} {
			known[f.Name+suffix] = known[f.Name+suffix] || f.Type == "histogram"
		}
	}
	return func(metric string) bool { return known[metric] }
}

// Look returns which data in an archive the alerts with the given name read. `known` is a function that Known returned.
// Look fails if ctx ends or the archive cannot be read.
func (s Ruleset) Look(ctx context.Context, a *archive.Archive, alert string, known func(metric string) bool) (Visibility, error) {
	var visible Visibility
	first, last, err := a.Bounds(ctx)
	if err != nil {
		return Visibility{Blind: err.Error()}, ctx.Err()
	}
	seen := archived{ctx: ctx, a: a, first: first, last: last}
	for _, selector := range s.Reads(alert) {
		metric, targets := MetricOf(selector), targetMatchers(selector)
		if metric == "ALERTS" || metric == "ALERTS_FOR_STATE" { // the rules write these
			continue
		}
		if visible.Blind = seen.whyNoSeriesFits(selector); visible.Blind != "" {
			break
		}
		if metric == "" || metric == "up" {
			continue
		}
		having := seen.instances(archive.Equal(model.MetricNameLabel, metric))
		switch {
		case len(having) > 0:
		case known(metric) && len(targets) > 0:
			if !slices.Contains(visible.Unborn, metric) {
				visible.Unborn = append(visible.Unborn, metric)
			}
		default:
			visible.Blind = fmt.Sprintf("%s was not recorded: no scraped target exposes it, or the run did not keep it (loadgen run --abort-rules FILE keeps what the rules in FILE read)", metric)
		}
		if visible.Blind != "" {
			break
		}
		if len(targets) > 0 {
			having = seen.targets(targets)
		}
		visible.Instances = append(visible.Instances, having...)
	}
	slices.Sort(visible.Instances)
	visible.Instances = slices.Compact(visible.Instances)
	return visible, seen.err
}

// WhyNoSeriesFits returns the reason why no series in an archive can match a selector: no target with the selected job
// or instance was scraped, or no series of the metric has the selected labels. It returns "" if a series could match.
// It also returns "" if the metric has no series, because its labels are then unknown. first and last are the times of
// the first and the last scrape.
func WhyNoSeriesFits(ctx context.Context, a *archive.Archive, first, last time.Time, selector []*labels.Matcher) (string, error) {
	lookup := archived{ctx: ctx, a: a, first: first, last: last}
	why := lookup.whyNoSeriesFits(selector)
	return why, lookup.err
}

// archived queries an archive until the first error, which it keeps in err.
type archived struct {
	ctx         context.Context
	a           *archive.Archive
	first, last time.Time
	err         error
}

// whyNoSeriesFits is like WhyNoSeriesFits, but stores an error in s.err.
func (s *archived) whyNoSeriesFits(selector []*labels.Matcher) string {
	jobs, targets := only(selector, model.JobLabel), targetMatchers(selector)
	switch {
	case len(targets) == 0 || len(s.targets(targets)) > 0 || s.err != nil:
	case len(jobs) == 0 || len(s.targets(jobs)) > 0:
		return "no target matches " + text("up", targets)
	case len(JobsOf(selector)) > 0:
		return strings.Join(JobsOf(selector), ", ") + " was not scraped"
	default:
		return fmt.Sprintf("no scraped target has %s", jobs[0])
	}
	metric := MetricOf(selector)
	if metric == "" || len(s.instances(selector...)) > 0 {
		return ""
	}
	names := s.ask(s.a.LabelNames, []*labels.Matcher{archive.Equal(model.MetricNameLabel, metric)})
	if len(names) == 0 {
		return ""
	}
	for _, m := range selector {
		if !m.Matches("") && !slices.Contains(names, m.Name) {
			return fmt.Sprintf("no series of %s has a label %s", metric, m.Name)
		}
	}
	if metric == "up" { // every target has this metric from the first scrape
		return "no target matches " + text(metric, selector)
	}
	return ""
}

func (s *archived) instances(matchers ...*labels.Matcher) []string {
	return s.ask(s.a.Instances, matchers)
}

func (s *archived) ask(of func(context.Context, time.Time, time.Time, ...*labels.Matcher) ([]string, error), matchers []*labels.Matcher) (found []string) {
	if s.err == nil {
		found, s.err = of(s.ctx, s.first, s.last, matchers...)
	}
	return found
}

// targets returns the matching instances that the recorder scraped, successfully or not.
func (s *archived) targets(matchers []*labels.Matcher) []string {
	return s.instances(append([]*labels.Matcher{archive.Equal(model.MetricNameLabel, "up")}, matchers...)...)
}

func targetMatchers(selector []*labels.Matcher) []*labels.Matcher {
	return only(selector, model.JobLabel, model.InstanceLabel)
}

func only(selector []*labels.Matcher, names ...string) []*labels.Matcher {
	var all []*labels.Matcher
	for _, m := range selector {
		if slices.Contains(names, m.Name) {
			all = append(all, m)
		}
	}
	return all
}

func text(metric string, matchers []*labels.Matcher) string {
	v := parser.VectorSelector{Name: metric, LabelMatchers: matchers}
	return v.String()
}
