package promimport

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/value"

	"github.com/stormglass/stormglass/loadgen/internal/archive"
)

type boundary struct {
	at int64 // time of the boundary's samples in the archive, in ms by this machine's clock
	// seen is the time of the scrape that the run waited for at the boundary, in ms by the Prometheus server's clock,
	// or 0 if that scrape is missing.
	seen int64
}

// moment is one scrape of a target, as stored in the archive.
type moment struct {
	at int64 // time of the samples in the archive, in ms by this machine's clock
	of int64 // time of the scrape, in ms by the Prometheus server's clock; 0 if the scrape is missing
	up bool
}

// patience is the number of scrape intervals after which a scrape counts as missing.
const patience = 2.5

// moments returns the scrapes of one target in chronological order, from shortly before the first boundary to the last
// boundary. Times are shifted by the difference between the clocks. Each boundary is added as a copy of the scrape that
// the run waited for. Gaps of more than patience intervals get one missing scrape per interval.
//
// The scrape that the run waited for always comes before its boundary, and later scrapes come after the boundary. The
// shifted times alone may violate this order, because the measured clock difference has an error of a few milliseconds.
func moments(ticks []tick, boundaries []boundary, ahead int64, every time.Duration) []moment {
	if len(boundaries) == 0 {
		return nil
	}
	longest := int64(patience * float64(every.Milliseconds()))
	first, last := boundaries[0].at, boundaries[len(boundaries)-1].at
	var all []moment
	var before int64
	for _, t := range ticks {
		at := t.at - ahead
		for _, b := range boundaries {
			switch {
			case b.seen == 0:
			case t.at <= b.seen:
				at = min(at, b.at-1)
			default:
				at = max(at, b.at+1)
			}
		}
		at = max(at, before+1)
		before = at
		if at > first-longest && at < last {
			all = append(all, moment{at: at, of: t.at, up: t.up})
		}
	}
	all = filled(all, first, last, every.Milliseconds())
	for _, b := range boundaries {
		shown := moment{at: b.at}
		for _, t := range ticks {
			if t.at == b.seen {
				shown.of, shown.up = t.at, t.up
			}
		}
		i, _ := slices.BinarySearchFunc(all, b.at, func(m moment, at int64) int { return cmp.Compare(m.at, at) })
		all = slices.Insert(all, i, shown)
	}
	return all
}

// filled fills each gap between first and end that is longer than patience intervals with one missing scrape per
// interval.
func filled(all []moment, first, end, every int64) []moment {
	var out []moment
	before := first
	for _, m := range append(all, moment{at: end}) {
		if float64(m.at-before) > patience*float64(every) {
			for at := before + every; at < m.at-every/2; at += every {
				out = append(out, moment{at: at})
			}
		}
		if m.at < end {
			out = append(out, m)
		}
		before = max(before, m.at)
	}
	return out
}

// point is one sample of a series in the archive.
type point struct {
	at int64 // time of the sample, in ms since 1970
	v  float64
}

// past describes which earlier scrapes contained a series.
type past struct {
	seen    bool // whether any earlier scrape had the series
	present bool // whether the last scrape had the series
}

// before is the last moment of the previous part (samples are copied in parts), and the start time of the process at
// that moment. It is zero for the first part.
type before struct {
	moment
	started float64 // process_start_time_seconds at that moment; 0 if unknown
}

// place assigns the samples of a series to the moments of its target. It adds a zero where the series begins, and a
// staleness marker where it ends. samples and moments are in chronological order. A sample belongs to the first moment
// whose scrape is not earlier. If a moment has several samples, place uses the last one.
//
// started holds the start time of the process at each moment, because a cumulative series starts again at 0 with a new
// process.
func place(samples []model.SamplePair, moments []moment, started []float64, b before, p *past, cumulative bool) []point {
	var all []point
	next := 0
	var shown *model.SamplePair // the sample of the scrape at the time `of`
	var of int64
	for i, m := range moments {
		if m.of != of { // otherwise m is a boundary with the same scrape
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

// counts reports whether a series is cumulative. It uses the type of the metric family or, if the type is unknown, the
// name of the series.
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
		return suffix == "_bucket" // unknown type: only _bucket surely belongs to a histogram
	}
	return strings.HasSuffix(series, "_total")
}
