package promimport

import (
	"fmt"
	"strings"
	"testing"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/value"
)

// TestPlace: a series begins with a zero if one is certain, ends with a marker, and
// at a boundary repeats the previous scrape's value.
func TestPlace(t *testing.T) {
	up := func(at ...int64) []moment {
		var all []moment
		for _, a := range at {
			all = append(all, moment{at: a, of: a, up: true})
		}
		return all
	}
	samples := func(pairs ...float64) []model.SamplePair {
		var all []model.SamplePair
		for i := 0; i < len(pairs); i += 2 {
			all = append(all, model.SamplePair{Timestamp: model.Time(pairs[i]), Value: model.SampleValue(pairs[i+1])})
		}
		return all
	}
	const process, another = 5000, 9000
	known := before{moment{at: 0, of: 0, up: true}, process}
	lost := up(10, 20, 30)
	lost[1].up = false
	for name, c := range map[string]struct {
		samples   []model.SamplePair
		moments   []moment
		started   []float64
		before    before
		past      past
		gauge     bool
		want      string
		remembers past
	}{
		"a counter that is first seen begins at zero": {
			samples: samples(20, 7, 30, 9), moments: up(10, 20, 30), started: []float64{process, process, process}, before: known,
			want: "10=0 20=7 30=9", remembers: past{true, true},
		},
		"at the first moment of all nothing is known of before": {
			samples: samples(10, 7), moments: up(10), started: []float64{process},
			want: "10=7", remembers: past{true, true},
		},
		"of another process nothing is known": {
			samples: samples(20, 7), moments: up(10, 20), started: []float64{process, another}, before: known,
			want: "20=7", remembers: past{true, true},
		},
		"before it was a lost scrape": {
			samples: samples(30, 7), moments: lost, started: []float64{process, 0, process}, before: known,
			want: "30=7", remembers: past{true, true},
		},
		"a gauge has no zero": {
			samples: samples(20, 7), moments: up(10, 20), started: []float64{process, process}, before: known, gauge: true,
			want: "20=7", remembers: past{true, true},
		},
		"it goes away and comes back": {
			samples: samples(10, 7, 40, 8), moments: up(10, 20, 30, 40), started: []float64{process, process, process, process}, before: known,
			want: "0=0 10=7 20=stale 40=8", remembers: past{true, true},
		},
		"its target does not answer": {
			samples: samples(10, 7, 30, 8), moments: lost, started: []float64{process, 0, process}, before: known, past: past{true, true},
			want: "10=7 20=stale 30=8", remembers: past{true, true},
		},
		"a boundary shows the scrape before it": {
			samples: samples(10, 7, 20, 9), moments: []moment{{10, 10, true}, {15, 10, true}, {20, 20, true}},
			started: []float64{process, process, process}, before: known, past: past{true, true},
			want: "10=7 15=7 20=9", remembers: past{true, true},
		},
		"a boundary that was lost ends it": {
			samples: samples(10, 7), moments: []moment{{10, 10, true}, {15, 0, false}},
			started: []float64{process, 0}, before: known, past: past{true, true},
			want: "10=7 15=stale", remembers: past{true, false},
		},
		"a sample between two scrapes belongs to the later": {
			samples: samples(10, 7, 18, 8), moments: up(10, 20), started: []float64{process, process}, before: known, past: past{true, true},
			want: "10=7 20=8", remembers: past{true, true},
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := c.past
			var got []string
			for _, x := range place(c.samples, c.moments, c.started, c.before, &p, !c.gauge) {
				v := fmt.Sprint(x.v)
				if value.IsStaleNaN(x.v) {
					v = "stale"
				}
				got = append(got, fmt.Sprintf("%d=%s", x.at, v))
			}
			if g := strings.Join(got, " "); g != c.want || p != c.remembers {
				t.Errorf("got %s, remembers %+v; want %s, %+v", g, p, c.want, c.remembers)
			}
		})
	}
}

// TestCounts: only certain counters get a zero.
func TestCounts(t *testing.T) {
	types := map[string]model.MetricType{
		"workqueue_depth": model.MetricTypeGauge, "fail_open_count": model.MetricTypeCounter,
		"objects_count": model.MetricTypeGauge, "latency_seconds": model.MetricTypeHistogram, "made_total": model.MetricTypeGauge,
	}
	for series, want := range map[string]bool{
		"workqueue_depth": false, "fail_open_count": true, "objects_count": false,
		"latency_seconds_bucket": true, "latency_seconds_sum": true, "made_total": false,
		"unknown_total": true, "unknown_bucket": true, "unknown_sum": false, "unknown_count": false, "unknown": false,
	} {
		if got := counts(series, types); got != want {
			t.Errorf("%s: %v, want %v", series, got, want)
		}
	}
}
