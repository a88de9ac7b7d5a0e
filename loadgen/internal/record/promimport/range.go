package promimport

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	v1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"

	"github.com/stormglass/stormglass/loadgen/internal/archive"
)

// Range evaluates PromQL in which jobs have our names over the cluster's series, at start, start+step, ... end. Jobs of
// the answer have our names too.
func (s *Source) Range(ctx context.Context, expr string, start, end time.Time, step time.Duration) ([]archive.Series, error) {
	theirs := expr
	if !s.ours {
		var err error
		if theirs, err = s.translate(expr); err != nil {
			return nil, err
		}
	}
	value, _, err := s.api.QueryRange(ctx, theirs, v1.Range{Start: start, End: end, Step: step})
	if err != nil {
		return nil, fmt.Errorf("%s: %s", s.url, oneLine(err))
	}
	matrix, ok := value.(model.Matrix)
	if !ok {
		return nil, fmt.Errorf("%s: it answers with a %s, not a matrix", s.url, value.Type())
	}
	all := make([]archive.Series, 0, len(matrix))
	for _, stream := range matrix {
		one := archive.Series{Labels: map[string]string{}}
		for name, v := range stream.Metric {
			one.Labels[string(name)] = string(v)
		}
		if ours, ok := s.jobs[one.Labels[model.JobLabel]]; ok && !s.ours {
			one.Labels[model.JobLabel] = ours
		}
		for _, p := range stream.Values {
			one.Points = append(one.Points, archive.Point{T: p.Timestamp.Time().UTC(), V: float64(p.Value)})
		}
		all = append(all, one)
	}
	return all, nil
}

// translate puts their names of jobs in the place of ours, and narrows each selector to the cluster.
func (s *Source) translate(expr string) (string, error) {
	root, err := archive.NewParser().ParseExpr(expr)
	if err != nil {
		return "", err
	}
	parser.Inspect(root, func(n parser.Node, _ []parser.Node) error {
		v, ok := n.(*parser.VectorSelector)
		if !ok {
			return nil
		}
		for i, m := range v.LabelMatchers {
			if m.Name == model.JobLabel {
				v.LabelMatchers[i] = s.theirJob(m)
			}
		}
		v.LabelMatchers = append(v.LabelMatchers, s.match...)
		return nil
	})
	return root.String(), nil
}

// theirJob matches the jobs that are called so here.
func (s *Source) theirJob(ours *labels.Matcher) *labels.Matcher {
	var names []string
	for theirs, name := range s.jobs {
		if ours.Matches(name) {
			names = append(names, regexp.QuoteMeta(theirs))
		}
	}
	if len(names) == 0 {
		return ours
	}
	slices.Sort(names)
	return labels.MustNewMatcher(labels.MatchRegexp, model.JobLabel, strings.Join(names, "|"))
}
