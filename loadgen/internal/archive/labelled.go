package archive

import (
	"context"
	"errors"
	"maps"
	"slices"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/util/annotations"
)

// Merge returns a storage with the series of all given storages.
func Merge(all ...storage.Queryable) storage.Queryable {
	return storage.QueryableFunc(func(mint, maxt int64) (storage.Querier, error) {
		var opened []storage.Querier
		for _, q := range all {
			one, err := q.Querier(mint, maxt)
			if err != nil {
				errs := []error{err}
				for _, o := range opened {
					errs = append(errs, o.Close())
				}
				return nil, errors.Join(errs...)
			}
			opened = append(opened, one)
		}
		return storage.NewMergeQuerier(opened, nil, storage.ChainedSeriesMerge), nil
	})
}

// WithLabels returns a storage that adds labels to each series. Like a scrape, it renames a label of the series with
// the same name to exported_NAME.
func WithLabels(inner storage.Queryable, more map[string]string) storage.Queryable {
	if len(more) == 0 {
		return inner
	}
	return storage.QueryableFunc(func(mint, maxt int64) (storage.Querier, error) {
		q, err := inner.Querier(mint, maxt)
		if err != nil {
			return nil, err
		}
		return labelled{q, more}, nil
	})
}

// AddLabels adds the labels in more to own. Like WithLabels, it renames conflicting labels.
func AddLabels(own labels.Labels, more map[string]string) labels.Labels {
	b := labels.NewBuilder(own)
	for name, v := range more {
		if theirs := own.Get(name); theirs != "" {
			b.Set("exported_"+name, theirs)
		}
		b.Set(name, v)
	}
	return b.Labels()
}

type labelled struct {
	inner storage.Querier
	more  map[string]string
}

// matched evaluates the matchers on added labels, and returns the other matchers, which the inner storage must
// evaluate. ok is false if an added label does not match.
func (l labelled) matched(matchers []*labels.Matcher) (inner []*labels.Matcher, ok bool) {
	for _, m := range matchers {
		v, added := l.more[m.Name]
		switch {
		case !added:
			inner = append(inner, m)
		case !m.Matches(v):
			return nil, false
		}
	}
	if len(inner) == 0 { // the storage rejects a selection without matchers
		inner = append(inner, Named())
	}
	return inner, true
}

// Select implements storage.Querier. It sorts the series again, because added labels can change their order.
func (l labelled) Select(ctx context.Context, _ bool, hints *storage.SelectHints, matchers ...*labels.Matcher) storage.SeriesSet {
	inner, ok := l.matched(matchers)
	if !ok {
		return storage.EmptySeriesSet()
	}
	set := l.inner.Select(ctx, false, hints, inner...)
	found := &seriesList{}
	for set.Next() {
		found.all = append(found.all, relabelled{set.At(), AddLabels(set.At().Labels(), l.more)})
	}
	found.err, found.warnings = set.Err(), set.Warnings()
	slices.SortFunc(found.all, func(a, b storage.Series) int { return labels.Compare(a.Labels(), b.Labels()) })
	return found
}

// LabelValues implements storage.LabelQuerier.
func (l labelled) LabelValues(ctx context.Context, name string, hints *storage.LabelHints, matchers ...*labels.Matcher) ([]string, annotations.Annotations, error) {
	inner, ok := l.matched(matchers)
	if !ok {
		return nil, nil, nil
	}
	if v, added := l.more[name]; added {
		return []string{v}, nil, nil
	}
	if len(matchers) == 0 {
		inner = nil
	}
	return l.inner.LabelValues(ctx, name, hints, inner...)
}

// LabelNames implements storage.LabelQuerier.
func (l labelled) LabelNames(ctx context.Context, hints *storage.LabelHints, matchers ...*labels.Matcher) ([]string, annotations.Annotations, error) {
	inner, ok := l.matched(matchers)
	if !ok {
		return nil, nil, nil
	}
	if len(matchers) == 0 {
		inner = nil
	}
	names, warnings, err := l.inner.LabelNames(ctx, hints, inner...)
	if err != nil || len(names) == 0 {
		return names, warnings, err
	}
	names = append(slices.Clone(names), slices.Collect(maps.Keys(l.more))...)
	slices.Sort(names)
	return slices.Compact(names), warnings, nil
}

// Close implements storage.LabelQuerier.
func (l labelled) Close() error { return l.inner.Close() }

type relabelled struct {
	storage.Series
	labels labels.Labels
}

func (r relabelled) Labels() labels.Labels { return r.labels }

// seriesList is a storage.SeriesSet over a list of series. The samples are not in memory.
type seriesList struct {
	all      []storage.Series
	at       int
	err      error
	warnings annotations.Annotations
}

func (s *seriesList) Next() bool                        { s.at++; return s.err == nil && s.at <= len(s.all) }
func (s *seriesList) At() storage.Series                { return s.all[s.at-1] }
func (s *seriesList) Err() error                        { return s.err }
func (s *seriesList) Warnings() annotations.Annotations { return s.warnings }
