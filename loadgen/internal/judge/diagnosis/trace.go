package diagnosis

import (
	"regexp"
	"slices"

	"github.com/stormglass/stormglass/loadgen/internal/spans"
	"github.com/stormglass/stormglass/loadgen/result"
)

// minShare is the minimum part of a request's latency, as a fraction, that the cause's span must spend on the critical
// path.
const minShare = 0.25

// AddTraces adds to each cause the kept trace in which the cause's span has the most time on the critical path. The
// request must have been due while the cause lasted, and this time must be at least minShare of the request's latency.
// A cause without such a trace stays unchanged.
func AddTraces(causes []result.Cause, all []spans.Trace) {
	for i := range causes {
		c := &causes[i]
		at := slices.IndexFunc(known.Mechanisms, func(m mechanism) bool { return m.Kind == c.Kind })
		if at < 0 || known.Mechanisms[at].Span == "" {
			continue
		}
		span := regexp.MustCompile(known.Mechanisms[at].Span) // a test compiles all of them
		for j := range all {
			if t := &all[j]; t.Due >= c.Began.UnixNano() && (c.Ended.IsZero() || t.Due <= c.Ended.UnixNano()) {
				shows(c, t, span)
			}
		}
	}
}

// shows makes t the trace of the cause c if its span has more time on the critical path of t than of the present trace
// of c.
func shows(c *result.Cause, t *spans.Trace, span *regexp.Regexp) {
	best := result.CauseTrace{ID: t.Trace.String(), Request: t.Verb + " " + t.Resource, Seconds: float64(t.Duration()) / 1e9}
	for _, n := range t.Tree().All() {
		if name := n.Process + " " + n.Name; span.MatchString(name) && float64(n.Critical)/1e9 > best.Critical {
			best.Span, best.Critical = name, float64(n.Critical)/1e9
		}
	}
	if best.Critical >= minShare*best.Seconds && best.Critical > 0 && (c.Trace == nil || best.Critical > c.Trace.Critical) {
		c.Trace = &best
	}
}
