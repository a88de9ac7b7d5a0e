package diagnosis

import (
	"time"

	"github.com/stormglass/stormglass/loadgen/result"
)

const (
	// liveUnder is the length of the time that is diagnosed as the present.
	liveUnder = 2 * time.Minute
	// liveCalm is the longest calm time before it, and the longest for which it stays where it is.
	liveCalm = time.Hour
)

// Live has the times of a diagnosis of the present that is made again and again. While a cause lasts the calm time stays
// the one before it, so that a long disturbance does not become what is compared with.
type Live struct {
	Since time.Time   // of the recorded data; zero: as long as it takes
	calm  result.Span // before what lasts; zero: nothing does
}

// Options returns those of a diagnosis now.
func (l *Live) Options(now time.Time) Options {
	under := result.Span{From: now.Add(-liveUnder), To: now}
	calm := CalmBefore(under.From)
	if calm.From.Before(l.Since) {
		calm.From = l.Since
	}
	if l.calm != (result.Span{}) {
		calm, under.From = l.calm, l.calm.To
	}
	return Options{From: calm.From, To: now, Calm: calm, Under: under}
}

// Saw takes in the diagnosis that was made.
func (l *Live) Saw(d result.Diagnosis) {
	switch {
	case !lasts(d) || d.Under.To.Sub(l.calm.To) > liveCalm && l.calm != (result.Span{}):
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
