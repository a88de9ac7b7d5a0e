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

	"github.com/stormglass/stormglass/loadgen/record"
)

// Unseen says why no series of an archive, scraped from first to last, can ever
// have fitted a selector: no target of its job was scraped, or its metric has no
// such label, as where rules of another monitoring name a cluster or a namespace.
// It is empty where one could have, though none did, and where the metric has no
// series at all, which says nothing of its labels.
func Unseen(ctx context.Context, a *record.Archive, first, last time.Time, selector []*labels.Matcher) (string, error) {
	seen := archived{ctx: ctx, a: a, first: first, last: last}
	why := seen.unseen(selector)
	return why, seen.err
}

// archived asks an archive until something goes wrong.
type archived struct {
	ctx         context.Context
	a           *record.Archive
	first, last time.Time
	err         error
}

// unseen is Unseen; of an error it says nothing.
func (s *archived) unseen(selector []*labels.Matcher) string {
	if jobs := jobMatchers(selector); len(jobs) > 0 && len(s.targets(jobs)) == 0 && s.err == nil {
		if names := JobsOf(selector); len(names) > 0 {
			return strings.Join(names, ", ") + " was not scraped"
		}
		return fmt.Sprintf("nothing with %s was scraped", jobs[0])
	}
	metric := MetricOf(selector)
	if metric == "" || len(s.instances(selector...)) > 0 {
		return ""
	}
	names := s.labelNames(equal(model.MetricNameLabel, metric))
	if len(names) == 0 {
		return ""
	}
	for _, m := range selector {
		if !m.Matches("") && !slices.Contains(names, m.Name) {
			return fmt.Sprintf("no series of %s has a label %s", metric, m.Name)
		}
	}
	if metric == "up" { // which is there from the first scrape on
		return fmt.Sprintf("no target fits %s", text(selector))
	}
	return ""
}

func (s *archived) instances(matchers ...*labels.Matcher) []string {
	if s.err != nil {
		return nil
	}
	found, err := s.a.Instances(s.ctx, s.first, s.last, matchers...)
	s.err = err
	return found
}

func (s *archived) labelNames(matchers ...*labels.Matcher) []string {
	if s.err != nil {
		return nil
	}
	found, err := s.a.LabelNames(s.ctx, s.first, s.last, matchers...)
	s.err = err
	return found
}

// targets are the instances of jobs that were scraped, or tried to be.
func (s *archived) targets(jobs []*labels.Matcher) []string {
	return s.instances(append([]*labels.Matcher{equal(model.MetricNameLabel, "up")}, jobs...)...)
}

// jobMatchers are those of a selector that choose jobs.
func jobMatchers(selector []*labels.Matcher) []*labels.Matcher {
	var all []*labels.Matcher
	for _, m := range selector {
		if m.Name == model.JobLabel {
			all = append(all, m)
		}
	}
	return all
}

// text is a selector as PromQL writes it.
func text(selector []*labels.Matcher) string {
	v := parser.VectorSelector{Name: MetricOf(selector), LabelMatchers: selector}
	return v.String()
}

func equal(name, v string) *labels.Matcher {
	return labels.MustNewMatcher(labels.MatchEqual, name, v)
}
