package result

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"net/http"
	"slices"
	"strconv"
)

// Replay holds the results of a load of kind "replay" over the whole run.
type Replay struct {
	Load    string  `json:"load"`
	Speed   float64 `json:"speed"`
	Copies  int     `json:"copies"`
	Actors  int     `json:"actors"`  // number of users that send requests: the users of the trace in each copy
	Seconds float64 `json:"seconds"` // how long the load ran
	// Scheduled: requests and watches of the trace, in all copies, at the replay's speed
	Scheduled int64 `json:"scheduled"`
	Due       int64 `json:"due"`  // part of scheduled that was due while the load ran
	Sent      int64 `json:"sent"` // part of due that was sent to the API server
	// RateError: the largest difference between sent and due for one verb, resource and actor, as a
	// share of due; absent if nothing was due
	RateError      *float64 `json:"rateError,omitempty"`
	RateErrorOf    string   `json:"rateErrorOf,omitempty"` // the verb, resource and actor with the largest difference
	DispersionDue  float64  `json:"dispersionDue"`         // variance divided by mean of the counts per second
	DispersionSent float64  `json:"dispersionSent"`        // the same for the sent requests
	// DispersionError: the difference of dispersionSent and dispersionDue, as a share of dispersionDue, or of 1 if
	// dispersionDue is smaller; absent if the load was too short
	DispersionError *float64      `json:"dispersionError,omitempty"`
	NotFound        ReplayShare   `json:"notFound"`  // answers of 404
	Conflicts       ReplayShare   `json:"conflicts"` // answers of 409
	Kinds           []ReplayKind  `json:"kinds"`
	Watches         ReplayWatches `json:"watches"`
	Made            int64         `json:"made"` // objects created before the replay
	// LeftOut: requests of the trace that are not replayed, by reason
	LeftOut map[string]int64 `json:"leftOut,omitempty"`
	// Mapped: writes of the trace that are sent to ConfigMaps instead, by resource
	Mapped  map[string]int64 `json:"mapped,omitempty"`
	Refused []string         `json:"refused,omitempty"` // why resources were mapped
	// VersionsUnset: reads at an exact resourceVersion that were sent without one
	VersionsUnset int64 `json:"versionsUnset,omitempty"`
	// PagesRestarted: further pages of lists that were replaced by the first page, because their continue token was not known
	PagesRestarted int64 `json:"pagesRestarted,omitempty"`
}

// ReplayKind counts requests of one verb and resource.
type ReplayKind struct {
	Verb     string `json:"verb"`
	Resource string `json:"resource"` // with its subresource, such as pods/status
	Due      int64  `json:"due"`
	Sent     int64  `json:"sent"`
	// Codes: answers by status, and failures as in Requests
	Codes      map[string]int64 `json:"codes"`
	TraceCodes map[string]int64 `json:"traceCodes"` // answers in the trace
}

// ReplayShare is a share of answers, from 0 to 1, in the trace and in its replay.
type ReplayShare struct {
	Trace  float64 `json:"trace"`
	Replay float64 `json:"replay"`
}

// ReplayWatches counts the watches of a replay.
type ReplayWatches struct {
	Due         int64            `json:"due"`
	Opened      int64            `json:"opened"`         // answered with 200
	Codes       map[string]int64 `json:"codes"`          // answers by status, and failures as in Requests
	Open        int64            `json:"open,omitempty"` // currently open; none after the run
	OpenMax     int64            `json:"openMax"`        // maximum open at the same time
	EndedEarly  int64            `json:"endedEarly"`     // watches that the API server ended before their time
	HeldSeconds float64          `json:"heldSeconds"`    // sum of the times for which watches were open
	DueSeconds  float64          `json:"dueHeldSeconds"` // the same in the trace
	OpenLatency Latency          `json:"openLatency"`    // time from the intended start to response headers
	Events      int64            `json:"events"`
	Bytes       int64            `json:"bytes"`
}

// ShareOf returns the share of responses with the status code, in the trace and in its replay. It ignores requests
// without a response, and requests whose response is not in the trace.
func ShareOf(kinds []ReplayKind, code int) ReplayShare {
	var traced, tracedAll, seen, seenAll int64
	for _, k := range kinds {
		for c, n := range k.TraceCodes {
			if tracedAll += n; c == strconv.Itoa(code) {
				traced += n
			}
		}
		for c, n := range k.Codes {
			if _, err := strconv.Atoi(c); err != nil {
				continue // no answer
			}
			if seenAll += n; c == strconv.Itoa(code) {
				seen += n
			}
		}
	}
	return ReplayShare{Trace: float64(traced) / float64(max(tracedAll, 1)), Replay: float64(seen) / float64(max(seenAll, 1))}
}

// mostDifferences is the maximum number of lines about status codes in Notes.
const mostDifferences = 5

// Notes returns one line for each notable fact: the requests that were not sent as in the trace, and the verbs and
// resources for which the share of 404 or 409 responses differs from the trace by over a percentage point. Of the
// latter, those with the most requests come first.
func (r Replay) Notes() []string {
	var notes []string
	for _, why := range slices.Sorted(maps.Keys(r.LeftOut)) {
		notes = append(notes, fmt.Sprintf("replay %s: %d requests of the trace are left out: %s", r.Load, r.LeftOut[why], why))
	}
	for _, resource := range slices.Sorted(maps.Keys(r.Mapped)) {
		notes = append(notes, fmt.Sprintf("replay %s: %d writes of %s in the trace go to ConfigMaps", r.Load, r.Mapped[resource], resource))
	}
	differences := r.differences()
	notes = append(notes, differences[:min(len(differences), mostDifferences)]...)
	if more := len(differences) - mostDifferences; more > 0 {
		notes = append(notes, fmt.Sprintf("replay %s: shares of 404 and 409 differ for %d more verbs and resources", r.Load, more))
	}
	return notes
}

func (r Replay) differences() (lines []string) {
	type difference struct {
		requests float64
		line     string
	}
	var all []difference
	for _, k := range r.Kinds {
		for _, code := range []int{http.StatusNotFound, http.StatusConflict} {
			s := ShareOf([]ReplayKind{k}, code)
			if by := math.Abs(s.Replay - s.Trace); by > 0.01 && len(k.Codes) > 0 && len(k.TraceCodes) > 0 {
				all = append(all, difference{by * float64(k.Due), fmt.Sprintf("replay %s: %.3g%% of %s %s were answered with %d, %.3g%% in the trace",
					r.Load, 100*s.Replay, k.Verb, k.Resource, code, 100*s.Trace)})
			}
		}
	}
	slices.SortStableFunc(all, func(a, b difference) int { return cmp.Compare(b.requests, a.requests) })
	for _, d := range all {
		lines = append(lines, d.line)
	}
	return lines
}
