package archive_test

import (
	"slices"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb"

	"github.com/stormglass/stormglass/loadgen/internal/archive"
)

// stored returns a storage with one sample for each series.
func stored(t *testing.T, series ...labels.Labels) *tsdb.DB {
	t.Helper()
	db, err := archive.OpenStore(t.TempDir(), 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	app := db.AppenderV2(t.Context())
	for _, l := range series {
		if _, err := app.Append(0, l, 0, 1000, 1, nil, nil, storage.AOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	if err := app.Commit(); err != nil {
		t.Fatal(err)
	}
	return db
}

// The samples of an instant query are sorted by their labels, so that the worst of several equal values is always the
// same one.
func TestInstantIsSorted(t *testing.T) {
	var buckets []labels.Labels
	for _, group := range []string{"d", "b", "a", "c", "f", "e"} {
		for _, le := range []string{"1", "+Inf"} {
			buckets = append(buckets, labels.FromStrings("__name__", "x_bucket", "group", group, "le", le))
		}
	}
	samples, err := archive.Evaluating(stored(t, buckets...)).Instant(t.Context(), "histogram_quantile(0.99, x_bucket)", time.UnixMilli(1000))
	if err != nil {
		t.Fatal(err)
	}
	var groups string
	for _, s := range samples {
		groups += s.Labels["group"]
	}
	if groups != "abcdef" {
		t.Errorf("the groups are in the order %q, want abcdef", groups)
	}
}

// Storages with different added labels can be merged. The series stay sorted although an added
// label changes their order, can be selected by that label, and the labels are listed.
func TestWithLabels(t *testing.T) {
	name := func(more ...string) labels.Labels {
		return labels.FromStrings(append([]string{"__name__", "x"}, more...)...)
	}
	one := stored(t, name("a", "1"), name("a", "1", "b", "1"), name("run", "theirs", "z", "1"))
	other := stored(t, name("a", "1"), name("a", "2", "z", "1"))
	both := archive.Merge(archive.WithLabels(one, map[string]string{"run": "one"}), archive.WithLabels(other, map[string]string{"run": "other"}))
	for _, c := range []struct {
		match *labels.Matcher
		want  []string
	}{
		{archive.Equal("run", "one"), []string{`{__name__="x", a="1", b="1", run="one"}`, `{__name__="x", a="1", run="one"}`, `{__name__="x", exported_run="theirs", run="one", z="1"}`}},
		{archive.Equal("a", "1"), []string{`{__name__="x", a="1", b="1", run="one"}`, `{__name__="x", a="1", run="one"}`, `{__name__="x", a="1", run="other"}`}},
		{archive.Equal("run", "none"), nil},
		{labels.MustNewMatcher(labels.MatchNotEqual, "run", "one"), []string{`{__name__="x", a="1", run="other"}`, `{__name__="x", a="2", run="other", z="1"}`}},
	} {
		q, err := both.Querier(0, 2000)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for set := q.Select(t.Context(), true, nil, c.match); set.Next(); {
			got = append(got, set.At().Labels().String())
		}
		if err := q.Close(); err != nil || !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, %v, want %q", c.match, got, err, c.want)
		}
	}
	q, err := both.Querier(0, 2000)
	if err != nil {
		t.Fatal(err)
	}
	defer q.Close()
	if names, _, err := q.LabelNames(t.Context(), nil); err != nil || !slices.Equal(names, []string{"__name__", "a", "b", "run", "z"}) {
		t.Errorf("names %q, %v", names, err)
	}
	if runs, _, err := q.LabelValues(t.Context(), "run", nil); err != nil || !slices.Equal(runs, []string{"one", "other"}) {
		t.Errorf("runs %q, %v", runs, err)
	}
	if values, _, err := q.LabelValues(t.Context(), "a", nil, archive.Equal("run", "one")); err != nil || !slices.Equal(values, []string{"1"}) {
		t.Errorf("values of a %q, %v", values, err)
	}
}

// Stream returns the samples from start to end, both included, and no others.
func TestStream(t *testing.T) {
	db := stored(t, labels.FromStrings("__name__", "x"), labels.FromStrings("__name__", "y"))
	for _, c := range []struct {
		start, end int64
		want       int
	}{{0, 999, 0}, {1000, 1000, 1}, {1001, 2000, 0}} {
		n := 0
		err := archive.Stream(t.Context(), db, c.start, c.end, func(_ labels.Labels, points []promql.FPoint) error {
			n += len(points)
			return nil
		}, archive.Equal(model.MetricNameLabel, "x"))
		if err != nil || n != c.want {
			t.Errorf("from %d to %d: %d samples, %v", c.start, c.end, n, err)
		}
	}
}

// A killed run has scrapes of some targets after the last scrape of all targets.
func TestScrapedPastTheLastBoundary(t *testing.T) {
	up := func(instance string) labels.Labels { return labels.FromStrings("__name__", "up", "instance", instance) }
	db := stored(t, up("a"), up("b"))
	app := db.AppenderV2(t.Context())
	if _, err := app.Append(0, up("a"), 0, 4000, 1, nil, nil, storage.AOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := app.Commit(); err != nil {
		t.Fatal(err)
	}
	a := archive.Evaluating(db)
	if _, last, err := a.Bounds(t.Context()); err != nil || last.UnixMilli() != 1000 {
		t.Errorf("the last boundary is %v: %v", last, err)
	}
	if first, last, err := a.Scraped(t.Context()); err != nil || first.UnixMilli() != 1000 || last.UnixMilli() != 4000 {
		t.Errorf("scraped from %v to %v: %v", first, last, err)
	}
}
