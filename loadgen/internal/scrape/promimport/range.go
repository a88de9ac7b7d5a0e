package promimport

import (
	"context"
	"regexp"
	"slices"
	"strings"
	"time"

	v1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"

	"github.com/stormglass/stormglass/loadgen/internal/archive"
	"github.com/stormglass/stormglass/loadgen/internal/scrape"
)

// Range evaluates a PromQL expression on the series of the cluster at start, start+step, ... end. Expression and result
// use Stormglass's job names.
func (s *Source) Range(ctx context.Context, expr string, start, end time.Time, step time.Duration) ([]archive.Series, error) {
	theirs, err := s.translate(expr)
	if err != nil {
		return nil, err
	}
	var all []archive.Series
	of := map[model.Fingerprint]int{} // index of a series in all
	splits := maxSplits
	for from := start; !from.After(end); from = from.Add(maxPoints * step) {
		to := from.Add((maxPoints - 1) * step)
		if to.After(end) {
			to = end
		}
		err := s.unambiguous(ctx, theirs, v1.Range{Start: from, End: to, Step: step}, &splits, func(m model.Matrix) { all = s.add(all, of, m) })
		if err != nil {
			return nil, err
		}
	}
	return all, nil
}

// maxSplits is the maximum number of times that Range splits a query in half.
const maxSplits = 100

// unambiguous evaluates a PromQL expression over a range. It skips the steps at which a target exists twice, for
// example while a pod takes over the address of another pod, because a query that matches series of the target one to
// one fails at such a step. unambiguous finds these steps by splitting the range in half.
func (s *Source) unambiguous(ctx context.Context, expr string, r v1.Range, splits *int, add func(model.Matrix)) error {
	matrix, err := s.matrix(ctx, expr, r)
	switch {
	case err == nil:
		add(matrix)
		return nil
	case !isAmbiguous(err) || *splits == 0:
		return err
	case !r.Start.Before(r.End):
		return nil
	}
	*splits--
	half := r
	half.End = r.Start.Add(r.End.Sub(r.Start) / 2 / r.Step * r.Step)
	if err := s.unambiguous(ctx, expr, half, splits, add); err != nil {
		return err
	}
	half.Start, half.End = half.End.Add(r.Step), r.End
	if half.Start.After(half.End) {
		return nil
	}
	return s.unambiguous(ctx, expr, half, splits, add)
}

// isAmbiguous reports whether a query failed because several series have the same matching labels.
func isAmbiguous(err error) bool {
	return strings.Contains(err.Error(), "duplicate") || strings.Contains(err.Error(), "multiple matches for labels")
}

func (s *Source) matrix(ctx context.Context, expr string, r v1.Range) (model.Matrix, error) {
	ctx, cancel := context.WithTimeout(ctx, rangeTimeout)
	defer cancel()
	value, warnings, err := s.api.QueryRange(ctx, expr, r)
	if err != nil {
		return nil, explain(err, rangeTimeout)
	}
	return matrixOf(value, warnings)
}

// maxPoints is the maximum number of points per series in one query of Range. Prometheus refuses more than 11,000.
const maxPoints = 10_000

// add appends the samples of a matrix to the series in `all`. `of` maps series to their indexes in `all`.
func (s *Source) add(all []archive.Series, of map[model.Fingerprint]int, matrix model.Matrix) []archive.Series {
	for _, stream := range matrix {
		id := stream.Metric.Fingerprint()
		if at, known := of[id]; known {
			all[at].Points = appendPoints(all[at].Points, stream.Values)
			continue
		}
		one := archive.Series{Labels: labelsOf(stream.Metric)}
		if ours, ok := s.jobs[one.Labels[model.JobLabel]]; ok && !s.ours {
			one.Labels[model.JobLabel] = ours
		}
		one.Points = appendPoints(nil, stream.Values)
		of[id] = len(all)
		all = append(all, one)
	}
	return all
}

func labelsOf(m model.Metric) map[string]string {
	all := make(map[string]string, len(m))
	for name, v := range m {
		all[string(name)] = string(v)
	}
	return all
}

func appendPoints(all []archive.Point, values []model.SamplePair) []archive.Point {
	for _, p := range values {
		all = append(all, archive.Point{T: p.Timestamp.Time().UTC(), V: float64(p.Value)})
	}
	return all
}

// translate replaces Stormglass's job names in an expression by the job names in the Prometheus server, and adds the
// matchers that select the cluster to each selector. If the Prometheus server uses Stormglass's job names, it returns
// the expression unchanged.
func (s *Source) translate(expr string) (string, error) {
	if s.ours {
		return expr, nil
	}
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

// theirJob converts a matcher for Stormglass's job names to a matcher for the job names in the Prometheus server. If
// Config.Jobs leaves the component's job out, the result matches nothing. Jobs that are not components have the same
// name in the Prometheus server.
func (s *Source) theirJob(ours *labels.Matcher) *labels.Matcher {
	var names []string
	for theirs, name := range s.jobs {
		if ours.Matches(name) {
			names = append(names, regexp.QuoteMeta(theirs))
		}
	}
	usual := KubePrometheusStack()
	if len(names) == 0 {
		for component := range usual {
			if ours.Matches(component) {
				return labels.MustNewMatcher(labels.MatchNotRegexp, model.JobLabel, ".*")
			}
		}
		return ours
	}
	for _, job := range scrape.Jobs() { // other jobs keep their names; see `loadgen observe`
		if _, theirs := usual[job]; !theirs && ours.Matches(job) {
			names = append(names, regexp.QuoteMeta(job))
		}
	}
	slices.Sort(names)
	return labels.MustNewMatcher(labels.MatchRegexp, model.JobLabel, strings.Join(names, "|"))
}
