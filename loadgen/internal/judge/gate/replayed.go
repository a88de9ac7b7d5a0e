package gate

import (
	"fmt"
	"math"
	"slices"

	"github.com/stormglass/stormglass/loadgen/result"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

// replayed returns the functions for the objectives on how closely a replay follows its recording, by the name of the
// objective.
func replayed() map[string]func(evidence) finding {
	return map[string]func(evidence) finding{
		"replay-rate-error": perReplay(func(r result.Replay) reading {
			if r.RateError == nil {
				return reading{missing: fmt.Sprintf("no request in the recording of replay %s was due during the run", r.Load)}
			}
			return reading{value: *r.RateError, detail: fmt.Sprintf("%s; in total, %d of %d requests were sent", r.RateErrorOf, r.Sent, r.Due)}
		}),
		"replay-dispersion-error": perReplay(func(r result.Replay) reading {
			if r.DispersionError == nil {
				return reading{missing: fmt.Sprintf("replay %s ran for %s; its dispersion (burstiness) is compared only after 5 s or more", r.Load, show("seconds", r.Seconds))}
			}
			return reading{value: *r.DispersionError, detail: fmt.Sprintf("dispersion (burstiness) %.3g as sent, %.3g in the recording", r.DispersionSent, r.DispersionDue)}
		}),
		"replay-not-found-error": shareError(notFound),
		"replay-conflict-error":  shareError(conflict),
	}
}

// These status codes mean that an object is missing or in conflict. If a replay has more of them than its recording,
// its objects differ from the recorded ones.
const (
	notFound = 404
	conflict = 409
)

// shareError returns a function that reads how much the share of a status code in the responses differs from its share
// in the recording (absolute difference).
func shareError(code int) func(evidence) finding {
	return perReplay(func(r result.Replay) reading {
		recorded := slices.ContainsFunc(r.Kinds, func(k result.ReplayKind) bool { return len(k.RecordedCodes) > 0 })
		answered := slices.ContainsFunc(r.Kinds, func(k result.ReplayKind) bool { return len(k.Codes) > 0 })
		switch {
		case !recorded:
			return reading{missing: fmt.Sprintf("the recording of %s has no status codes", r.Load)}
		case !answered:
			return reading{missing: fmt.Sprintf("no request of %s was answered", r.Load)}
		}
		s := result.ShareOf(r.Kinds, code)
		return reading{value: math.Abs(s.Replay - s.Recording), detail: fmt.Sprintf("%s of the replay's responses, %s in the recording", show(scenario.Ratio, s.Replay), show(scenario.Ratio, s.Recording))}
	})
}

// perReplay returns a function that reads one value of each replay. The value covers all phases in which the
// replay ran.
func perReplay(read func(result.Replay) reading) func(evidence) finding {
	return func(e evidence) finding {
		var f finding
		for _, load := range loadsOf(e.expects) {
			r := reading{missing: fmt.Sprintf("replay %s did not run", load)}
			if i := slices.IndexFunc(e.m.Replays, func(r result.Replay) bool { return r.Load == load }); i >= 0 {
				r = read(e.m.Replays[i])
			}
			r.of = load
			for _, at := range e.expects {
				if at.load == load {
					r.measuredIn = append(r.measuredIn, at.phase)
					r.without(lack(at.phase, e.phases))
				}
			}
			f.readings = append(f.readings, r)
		}
		return f
	}
}
