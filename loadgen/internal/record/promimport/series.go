package promimport

import (
	"math"
	"strings"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/value"

	"github.com/stormglass/stormglass/loadgen/internal/archive"
)

// point is one sample of a series in the archive.
type point struct {
	at int64
	v  float64
}

// past holds a series' earlier samples.
type past struct {
	seen    bool // it was in some scrape
	present bool // it was in the last
}

// before is the last moment before a part; zero if there is none.
type before struct {
	moment
	started float64 // process_start_time_seconds then; 0 if unknown
}

// place puts a series' samples at the moments of its target, and works out where it began
// and ended. started are the start times of the process at the moments; a cumulative
// series only grows while the process lives. samples and moments are in order of time: a
// sample belongs to the first moment that shows it or a later scrape, the last counts.
func place(samples []model.SamplePair, moments []moment, started []float64, b before, p *past, cumulative bool) []point {
	var all []point
	next := 0
	var shown *model.SamplePair // of the last scrape that was looked at
	var of int64
	for i, m := range moments {
		if m.of != of { // else it is a boundary, which shows the same scrape
			shown, of = nil, m.of
			for ; next < len(samples) && int64(samples[next].Timestamp) <= m.of; next++ {
				shown = &samples[next]
			}
		}
		switch {
		case shown != nil && m.up:
			if !p.seen && cumulative && b.up && archive.SameProcess(b.started, started[i]) {
				all = append(all, point{b.at, 0})
			}
			all = append(all, point{m.at, float64(shown.Value)})
			*p = past{seen: true, present: true}
		case p.present:
			all = append(all, point{m.at, math.Float64frombits(value.StaleNaN)})
			p.present = false
		}
		b = before{m, started[i]}
	}
	return all
}

// counts reports whether a series only grows while its process lives, by the type of its
// family or, if that is unknown, by its name.
func counts(series string, types map[string]model.MetricType) bool {
	switch types[series] {
	case model.MetricTypeCounter:
		return true
	case model.MetricTypeGauge, model.MetricTypeInfo, model.MetricTypeStateset:
		return false
	}
	for _, suffix := range []string{"_bucket", "_count", "_sum"} {
		family, ok := strings.CutSuffix(series, suffix)
		if !ok {
			continue
		}
		switch types[family] {
		case model.MetricTypeHistogram, model.MetricTypeSummary:
			return true
		case model.MetricTypeGaugeHistogram:
			return false
		}
		return suffix == "_bucket" // of unknown type: a histogram, or nothing certain
	}
	return strings.HasSuffix(series, "_total")
}
