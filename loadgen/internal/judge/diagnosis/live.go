package diagnosis

import (
	"slices"
	"time"

	"github.com/stormglass/stormglass/loadgen/result"
)

const (
	// The diagnosed time is the last liveUnder or, if that is longer, the last liveScrapes scrape intervals.
	liveUnder   = 2 * time.Minute
	liveScrapes = 8
	// liveCalm is the maximum length of the comparison period, and of the diagnosed time while a disturbance lasts.
	liveCalm = time.Hour
	// liveLasts is the maximum time for which Live keeps the comparison period before a disturbance. After that, the
	// disturbance counts as normal.
	liveLasts = 24 * time.Hour
)

// Live chooses the time ranges of repeated diagnoses of a running cluster: the comparison period and the diagnosed
// time. While a disturbance lasts, Live keeps the comparison period from before the disturbance, so that no diagnosis
// compares the disturbance with itself.
type Live struct {
	Since time.Time     // start of the recorded data; zero means no limit
	Step  time.Duration // the scrape interval
	calm  result.Span   // comparison period before the disturbance that lasts; zero if none lasts
}

// Options returns the options of a diagnosis at the time `now`.
func (l *Live) Options(now time.Time) Options {
	under := result.Span{From: now.Add(-max(liveUnder, liveScrapes*l.Step)), To: now}
	calm := CalmBefore(under.From)
	if calm.From.Before(l.Since) {
		calm.From = l.Since
	}
	if l.calm != (result.Span{}) {
		calm, under.From = l.calm, l.calm.To
		if most := now.Add(-liveCalm); under.From.Before(most) {
			under.From = most
		}
	}
	return Options{From: calm.From, To: now, Calm: calm, Under: under, CalmByDefault: l.calm == result.Span{}, Step: l.Step}
}

// Saw records the result of the latest diagnosis. This result determines the time ranges of the next diagnosis.
func (l *Live) Saw(d result.Diagnosis) {
	switch {
	case !lasts(d) || d.Under.To.Sub(l.calm.To) > liveLasts && l.calm != (result.Span{}):
		l.calm = result.Span{}
	case l.calm == result.Span{}:
		l.calm = d.Calm
	}
}

// lasts reports whether a cause, or a symptom without a known cause, has not ended.
func lasts(d result.Diagnosis) bool {
	return slices.ContainsFunc(d.Causes, func(c result.Cause) bool { return c.Ended.IsZero() }) ||
		slices.ContainsFunc(d.Symptoms, func(e result.Evidence) bool { return e.Ended.IsZero() })
}

// CalmBefore returns the default comparison period of a diagnosis with a Prometheus server: the hour before `from`.
func CalmBefore(from time.Time) result.Span {
	return result.Span{From: from.Add(-liveCalm), To: from}
}
