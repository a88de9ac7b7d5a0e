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
	at int64 // of its samples in the archive, ms by our clock
	// seen is the boundary's scrape, in ms by their clock; 0 if none came.
	seen int64
}

// moment is one scrape of a target as stored in the archive.
type moment struct {
	at int64 // its samples' time in the archive, ms by our clock
	of int64 // the scrape it shows, ms by their clock; 0 if none
	up bool
}

// patience is the number of intervals after which a scrape counts as missing.
const patience = 2.5

// moments returns the scrapes of one target from shortly before the first boundary
// to the last, in order of time: the target's own scrapes, shifted by the
// difference of the clocks; boundaries, with the scrape that the run waited for;
// and the lost scrapes of each gap that is too long.
//
// The awaited scrape comes before its boundary and later ones after it, even if the
// clocks' difference, known to a few milliseconds, says otherwise.
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

// filled inserts the lost scrapes of every gap from first to end that is longer than patience allows, one
// each interval.
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
	at int64
	v  float64
}

// past holds a series' earlier samples.
type past struct {
	seen    bool // it was in some scrape
	present bool // it was in the last
}

// before is the last moment before a part, or zero if there is no earlier moment.
type before struct {
	moment
	started float64 // process_start_time_seconds then; 0 if unknown
}

// place assigns a series' samples to the moments of its target, and finds where the
// series began and ended. started holds the start times of the process at the
// moments; a cumulative series only grows while the process lives. samples and
// moments are in order of time: a sample belongs to the first moment that shows it
// or a later scrape, and the last sample of a moment counts.
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

// counts reports whether a series only grows while its process lives, by the type
// of its family or, if the type is unknown, by its name.
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
