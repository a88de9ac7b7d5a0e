package observe

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/util/annotations"
)

// series returns the labels of all series that match at least one of the request's selectors.
func (s *Server) series(r *http.Request) (answer, error) {
	if len(r.Form["match[]"]) == 0 {
		return answer{}, badData{errors.New("no match[] parameter provided")}
	}
	if _, err := matchersOf(r); err != nil {
		return answer{}, badParameter("match[]", err)
	}
	return s.search(r, func(ctx context.Context, q storage.Querier, sets [][]*labels.Matcher, start, end int64, limit int) (answer, error) {
		hints := &storage.SelectHints{Start: start, End: end, Func: "series"} // with Func "series", Select reads no samples
		var found []storage.SeriesSet
		for _, set := range sets {
			found = append(found, q.Select(ctx, true, hints, set...))
		}
		merged := storage.NewMergeSeriesSet(found, 0, storage.ChainedSeriesMerge)
		var all []labels.Labels
		for merged.Next() {
			all = append(all, merged.At().Labels())
			if limit > 0 && len(all) > limit {
				break
			}
		}
		return limited(answer{warnings: merged.Warnings()}, all, limit), merged.Err()
	})
}

func (s *Server) labelNames(r *http.Request) (answer, error) {
	return s.search(r, func(ctx context.Context, q storage.Querier, sets [][]*labels.Matcher, _, _ int64, limit int) (answer, error) {
		return union(sets, limit, func(set []*labels.Matcher) ([]string, annotations.Annotations, error) {
			return q.LabelNames(ctx, &storage.LabelHints{}, set...)
		})
	})
}

func (s *Server) labelValues(r *http.Request) (answer, error) {
	name := r.PathValue("name")
	if len(name) > 3 && name[:3] == "U__" { // the escaped form of names that a path cannot contain
		name = model.UnescapeName(name, model.ValueEncodingEscaping)
	}
	if !model.UTF8Validation.IsValidLabelName(name) {
		return answer{}, badData{fmt.Errorf("invalid label name: %q", name)}
	}
	return s.search(r, func(ctx context.Context, q storage.Querier, sets [][]*labels.Matcher, _, _ int64, limit int) (answer, error) {
		return union(sets, limit, func(set []*labels.Matcher) ([]string, annotations.Annotations, error) {
			return q.LabelValues(ctx, name, &storage.LabelHints{}, set...)
		})
	})
}

// search parses the parameters that the endpoints for series, label names and label values share. It then calls find
// with a querier.
func (s *Server) search(r *http.Request, find func(ctx context.Context, q storage.Querier, sets [][]*labels.Matcher, start, end int64, limit int) (answer, error)) (a answer, err error) {
	limit, err := limitOf(r)
	if err != nil {
		return a, err
	}
	start, end, err := span(r)
	if err != nil {
		return a, err
	}
	sets, err := matchersOf(r)
	if err != nil {
		return a, err
	}
	q, err := s.samples.Querier(start, end)
	if err != nil {
		return a, err
	}
	defer q.Close()
	return find(r.Context(), q, sets, start, end, limit)
}

// union calls find for each set of matchers and returns the sorted union of the results. If sets is empty, it calls
// find once, without matchers.
func union(sets [][]*labels.Matcher, limit int, find func([]*labels.Matcher) ([]string, annotations.Annotations, error)) (answer, error) {
	if len(sets) == 0 {
		sets = [][]*labels.Matcher{nil}
	}
	var a answer
	found := map[string]bool{}
	for _, set := range sets {
		some, warnings, err := find(set)
		a.warnings.Merge(warnings)
		if err != nil {
			return a, err
		}
		for _, x := range some {
			found[strings.Clone(x)] = true // x may point into a file that is closed before the response is written
		}
	}
	return limited(a, slices.Sorted(maps.Keys(found)), limit), nil
}
