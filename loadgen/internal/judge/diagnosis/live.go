package diagnosis

import (
	"time"

	"github.com/stormglass/stormglass/loadgen/result"
)

const (
	// liveUnder is the length of the time that is diagnosed as the present, at least liveScrapes.
	liveUnder   = 2 * time.Minute
	liveScrapes = 8
	// liveCalm is the longest calm time before it, and how much of what lasts is diagnosed.
	liveCalm = time.Hour
	// liveLasts is the longest for which the calm time stays where it is: what lasts for longer is how things are.
	liveLasts = 24 * time.Hour
)

// Live has the times of a diagnosis of the present that is made again and again. While a cause lasts the calm time stays
// the one before it, so that a long disturbance does not become what is compared with.
type Live struct {
	Since time.Time     // of the recorded data; zero: as long as it takes
	Step  time.Duration // the interval of scrapes
	calm  result.Span   // before what lasts; zero: nothing does
}

// Options returns those of a diagnosis now.
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

// Saw takes in the diagnosis that was made.
func (l *Live) Saw(d result.Diagnosis) {
	switch {
	case !lasts(d) || d.Under.To.Sub(l.calm.To) > liveLasts && l.calm != (result.Span{}):
		l.calm = result.Span{}
	case l.calm == result.Span{}:
		l.calm = d.Calm
	}
}

// lasts reports whether a cause or a symptom without one goes on.
func lasts(d result.Diagnosis) bool {
	for _, c := range d.Causes {
		if c.Ended.IsZero() {
			return true
		}
	}
	for _, e := range d.Symptoms {
		if e.Ended.IsZero() {
			return true
		}
	}
	return false
}

// CalmBefore is the time that is calm by default before one of a Prometheus that is diagnosed.
func CalmBefore(from time.Time) result.Span {
	return result.Span{From: from.Add(-liveCalm), To: from}
}
