package panel

import (
	"fmt"
	"math"
	"path/filepath"
	"reflect"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/labels"

	"github.com/stormglass/stormglass/loadgen/internal/archive"
	"github.com/stormglass/stormglass/loadgen/internal/report/chart"
)

// TestRankOfEqualValuesIsByLabels repeats the same query on Prometheus' engine, which has no
// order among equal quotients.
func TestRankOfEqualValuesIsByLabels(t *testing.T) {
	dir := t.TempDir()
	store := filepath.Join(dir, "tsdb")
	db, err := archive.OpenStore(store, 0)
	if err != nil {
		t.Fatal(err)
	}
	add := db.Appender(t.Context())
	for i := range 20 {
		for name, v := range map[string]float64{"part": 0, "whole": 1} {
			if _, err := add.Append(0, labels.FromStrings("__name__", name, "n", fmt.Sprintf("%02d", i)), began.UnixMilli(), v); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := add.Commit(); err != nil {
		t.Fatal(err)
	}
	if err := archive.Seal(store, db); err != nil {
		t.Fatal(err)
	}
	recorded, err := archive.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer recorded.Close()
	for expr, want := range map[string][]string{
		"topk(3, part / whole)":    {"00", "01", "02"},
		"bottomk(2, part / whole)": {"00", "01"},
	} {
		for range 20 {
			found, err := ranked(t.Context(), recorded, expr, began, began, time.Second)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, s := range found {
				got = append(got, s.Labels["n"])
			}
			if !reflect.DeepEqual(got, want) {
				t.Fatalf("%s: %q, want %q", expr, got, want)
			}
		}
	}
}

func TestSeriesThatRankAtSomeTimeAreWhole(t *testing.T) {
	line := func(name string, values ...float64) chart.Series {
		s := chart.Series{Labels: map[string]string{"n": name}}
		for i, v := range values {
			s.Points = append(s.Points, chart.Point{T: at(i), V: v})
		}
		return s
	}
	given := func() []chart.Series {
		return []chart.Series{line("c", 1, 9, math.NaN()), line("a", 5, 5, 5), line("b", 7, 1, 7)}
	}
	count := func(all []chart.Series) map[string]int {
		n := map[string]int{}
		for _, s := range all {
			n[s.Labels["n"]] = len(s.Points)
		}
		return n
	}
	if got, want := count(highest(given(), 1, false)), map[string]int{"b": 3, "c": 3}; !reflect.DeepEqual(got, want) {
		t.Errorf("highest: %v, want %v", got, want)
	}
	if got, want := count(highest(given(), 1, true)), map[string]int{"a": 3, "b": 3, "c": 3}; !reflect.DeepEqual(got, want) {
		t.Errorf("lowest: %v, want %v", got, want)
	}
	if got, want := count(highest(given(), 9, false)), map[string]int{"a": 3, "b": 3, "c": 3}; !reflect.DeepEqual(got, want) {
		t.Errorf("all: %v, want %v", got, want)
	}
}

// A table evaluates only at the end of the span, up to a step after the last grid point.
func TestValueAtTheEndIsDrawn(t *testing.T) {
	for _, over := range []time.Duration{0, 4 * time.Second, 6 * time.Second, 9 * time.Second} {
		span, step := Span{Start: began, End: began.Add(time.Minute + over), Scrape: time.Second}, 10*time.Second
		a := artist{span: span, step: step, points: span.points(step)}
		got := a.sample([]chart.Point{{T: span.End, V: 7}})
		if last := got[len(got)-1]; last != 7 {
			t.Errorf("%s after the last grid point: the last value is %v, want 7", over, last)
		}
	}
}
