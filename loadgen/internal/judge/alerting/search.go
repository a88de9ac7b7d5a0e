package alerting

import (
	"context"
	"maps"
	"slices"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/util/annotations"
)

// searcher adds the methods of storage.LabelQuerier to a querier. They read the labels of the series that the querier
// selects.
type searcher struct{ querier }

// LabelNames implements storage.LabelQuerier.
func (s searcher) LabelNames(ctx context.Context, _ *storage.LabelHints, matchers ...*labels.Matcher) ([]string, annotations.Annotations, error) {
	return s.list(ctx, matchers, func(l labels.Label) string { return l.Name })
}

// LabelValues implements storage.LabelQuerier.
func (s searcher) LabelValues(ctx context.Context, name string, _ *storage.LabelHints, matchers ...*labels.Matcher) ([]string, annotations.Annotations, error) {
	return s.list(ctx, matchers, func(l labels.Label) string {
		if l.Name != name {
			return ""
		}
		return l.Value
	})
}

func (s searcher) list(ctx context.Context, matchers []*labels.Matcher, of func(labels.Label) string) ([]string, annotations.Annotations, error) {
	found, err := s.selected(ctx, matchers)
	all := map[string]bool{}
	for _, series := range found {
		series.Metric.Range(func(l labels.Label) {
			if text := of(l); text != "" {
				all[text] = true
			}
		})
	}
	return slices.Sorted(maps.Keys(all)), nil, err
}
