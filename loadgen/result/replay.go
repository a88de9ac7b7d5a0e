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

// Replay holds the results of a load of kind "replay" ([replay](replay.md)) in the whole run.
type Replay struct {
	Load   string  `json:"load"`
	Speed  float64 `json:"speed"`
	Copies int     `json:"copies"`
	// Actors: users that send requests: each user of the recording counts once per copy
	Actors  int     `json:"actors"`
	Seconds float64 `json:"seconds"` // how long the load ran
	// Scheduled: requests and watches in all copies of the recording, at the replay's speed
	Scheduled int64 `json:"scheduled"`
	Due       int64 `json:"due"`  // part of `scheduled` that was due while the load ran
	Sent      int64 `json:"sent"` // part of `due` that was sent
	// RateError: largest difference between sent and due requests of any verb, resource and actor, as a fraction of the
	// due requests
	RateError   *float64 `json:"rateError,omitempty"`
	RateErrorOf string   `json:"rateErrorOf,omitempty"` // verb, resource and actor that have the rateError
	// DispersionDue: variance divided by mean of the number of requests due in each second
	DispersionDue  float64 `json:"dispersionDue"`
	DispersionSent float64 `json:"dispersionSent"` // variance divided by mean of the number of requests sent in each second
	// DispersionError: relative difference between dispersionSent and dispersionDue
	DispersionError *float64      `json:"dispersionError,omitempty"`
	NotFound        ReplayShare   `json:"notFound"`  // fraction of 404 responses
	Conflicts       ReplayShare   `json:"conflicts"` // fraction of 409 responses
	Kinds           []ReplayKind  `json:"kinds"`
	Watches         ReplayWatches `json:"watches"`
	Made            int64         `json:"made"` // objects created before the replay
	// LeftOut: requests of the recording that are not replayed, by reason
	LeftOut map[string]int64 `json:"leftOut,omitempty"`
	// Mapped: writes of the recording that the replay sends to ConfigMaps instead, by their resource
	Mapped  map[string]int64 `json:"mapped,omitempty"`
	Refused []string         `json:"refused,omitempty"` // why the resources in `mapped` were mapped
	// Cut: requests whose body was cut to the size that the API server accepts, by this size in bytes
	Cut map[string]int64 `json:"cut,omitempty"`
	// VersionsUnset: reads sent without the exact resourceVersion of the recording
	VersionsUnset int64 `json:"versionsUnset,omitempty"`
	// PagesRestarted: requests for a further page of a list that read the first page instead
	PagesRestarted int64 `json:"pagesRestarted,omitempty"`
}

// ReplayKind counts requests of one verb and resource.
type ReplayKind struct {
	Verb          string           `json:"verb"`
	Resource      string           `json:"resource"`
	Due           int64            `json:"due"` // due requests
	Sent          int64            `json:"sent"`
	Codes         map[string]int64 `json:"codes"`      // responses by status, and failures by kind, as in [Requests](#requests)
	RecordedCodes map[string]int64 `json:"traceCodes"` // responses in the recording, by status
}

// ReplayShare is the fraction of responses with a status code, in the recording and in its replay.
type ReplayShare struct {
	Recording float64 `json:"trace"`
	Replay    float64 `json:"replay"`
}

// ReplayWatches counts the watches of a replay.
type ReplayWatches struct {
	Due         int64            `json:"due"`    // due watches
	Opened      int64            `json:"opened"` // watches with response 200
	Codes       map[string]int64 `json:"codes"`
	Open        int64            `json:"open,omitempty"` // currently open watches; 0 after the run
	OpenMax     int64            `json:"openMax"`        // largest number of watches open at the same time
	EndedEarly  int64            `json:"endedEarly"`     // watches that the API server ended earlier than in the recording
	HeldSeconds float64          `json:"heldSeconds"`    // sum of the times that watches were open
	DueSeconds  float64          `json:"dueHeldSeconds"` // sum of the times that the watches are open in the recording
	OpenLatency Latency          `json:"openLatency"`
	Events      int64            `json:"events"`
	Bytes       int64            `json:"bytes"` // total size of all events
}

// ShareOf returns the fraction of responses that have the status code, in the recording and in its replay. It ignores
// requests without a response, and requests whose response is not in the recording.
func ShareOf(kinds []ReplayKind, code int) ReplayShare {
	var recorded, recordedAll, seen, seenAll int64
	for _, k := range kinds {
		for c, n := range k.RecordedCodes {
			if recordedAll += n; c == strconv.Itoa(code) {
				recorded += n
			}
		}
		for c, n := range k.Codes {
			if _, err := strconv.Atoi(c); err != nil {
				continue // no response
			}
			if seenAll += n; c == strconv.Itoa(code) {
				seen += n
			}
		}
	}
	return ReplayShare{Recording: float64(recorded) / float64(max(recordedAll, 1)), Replay: float64(seen) / float64(max(seenAll, 1))}
}

const maxDifferences = 5

// Notes returns one line for each way in which the replay differs from the recording. Requests that were not sent as in
// the recording come first. Then come verbs and resources whose fraction of 404 or 409 responses differs by over a
// percentage point, sorted by the number of affected requests, largest first.
func (r Replay) Notes() []string {
	var notes []string
	for _, why := range slices.Sorted(maps.Keys(r.LeftOut)) {
		notes = append(notes, fmt.Sprintf("replay %s: %d requests of the recording are not replayed: %s", r.Load, r.LeftOut[why], why))
	}
	for _, resource := range slices.Sorted(maps.Keys(r.Mapped)) {
		notes = append(notes, fmt.Sprintf("replay %s: %d writes of %s in the recording go to ConfigMaps", r.Load, r.Mapped[resource], resource))
	}
	for _, size := range slices.Sorted(maps.Keys(r.Cut)) {
		notes = append(notes, fmt.Sprintf("replay %s: the bodies of %d requests of the recording are cut to %s bytes, the most that the API server accepts", r.Load, r.Cut[size], size))
	}
	differences := r.differences()
	notes = append(notes, differences[:min(len(differences), maxDifferences)]...)
	if more := len(differences) - maxDifferences; more > 0 {
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
			if by := math.Abs(s.Replay - s.Recording); by > 0.01 && len(k.Codes) > 0 && len(k.RecordedCodes) > 0 {
				all = append(all, difference{by * float64(k.Due), fmt.Sprintf("replay %s: %.3g%% of the %s %s requests were answered with %d, compared with %.3g%% in the recording",
					r.Load, 100*s.Replay, k.Verb, k.Resource, code, 100*s.Recording)})
			}
		}
	}
	slices.SortStableFunc(all, func(a, b difference) int { return cmp.Compare(b.requests, a.requests) })
	for _, d := range all {
		lines = append(lines, d.line)
	}
	return lines
}
