package recording

import (
	"cmp"
	"math"
	"regexp"
	"slices"

	"github.com/stormglass/stormglass/internal/exitcode"
)

// CompareOptions describe how a recording was replayed.
type CompareOptions struct {
	// Speed is the factor by which the replay was faster than the recording. Copies is the number of copies that the
	// replay sent at the same time. Zero means 1.
	Speed  float64
	Copies int
}

// Comparison compares a recording (the original) with a recording of its replay.
type Comparison struct {
	// Requests is the number of requests in the original, multiplied by the number of copies. Replayed is the number of
	// requests that the replay sent.
	Requests int64 `json:"requests"`
	Replayed int64 `json:"replayed"`
	// Setup is the number of requests in the replay's recording that the replay did not take from the original: requests
	// that created the replay's objects, and requests of other clients.
	Setup int64 `json:"setup"`
	// RateError is the largest Error of all Groups.
	RateError float64 `json:"rateError"`
	// Dispersion measures how bursty the requests of the original are at the speed of the replay (see Summary.Dispersion).
	// ReplayedDispersion is the dispersion of the replay. With several copies, the expected dispersion is unknown, because
	// the copies are shifted at random. Dispersion is then set to ReplayedDispersion.
	Dispersion         float64 `json:"dispersion"`
	ReplayedDispersion float64 `json:"replayedDispersion"`
	// DispersionError is the difference between Dispersion and ReplayedDispersion, divided by Dispersion or by 1,
	// whichever is larger.
	DispersionError float64 `json:"dispersionError"`
	// Groups compares the numbers of requests by verb, resource and actor, in descending order of Error.
	Groups []GroupComparison `json:"groups"`
}

// GroupComparison compares the numbers of requests with the same verb, resource and actor.
type GroupComparison struct {
	Verb     string `json:"verb"`
	Resource string `json:"resource"`
	Actor    string `json:"actor"`
	Requests int64  `json:"requests"`
	Replayed int64  `json:"replayed"`
	// Error is the difference between Requests and Replayed, as a fraction of Requests. It is 1 if Requests is 0.
	Error float64 `json:"error"`
}

// replayUser matches the user name under which a replay sends the requests of an actor. The name consists of the load,
// the number of the copy, and the user in the recording.
var replayUser = regexp.MustCompile(`^stormglass:tenant:[^:]+-\d+:(.*)$`)

// recorded returns the actor's user name in the recording, and whether a replay sent the actor's requests.
func (a Actor) recorded() (user string, replayed bool) {
	if m := replayUser.FindStringSubmatch(a.As); m != nil {
		return m[1], true
	}
	return cmp.Or(a.As, a.Name), false
}

// Compare compares the recording in the file `original` with a recording of its replay in the file `replay`. The
// recording of the replay must keep the names of users. If it contains users that a replay impersonated, Compare
// ignores the requests of all other users in it. Times are relative to the first request of each file.
func Compare(original, replay string, o CompareOptions) (Comparison, error) {
	speed, copies := cmp.Or(o.Speed, 1), int64(cmp.Or(o.Copies, 1))
	a, err := read(original, speed)
	if err != nil {
		return Comparison{}, err
	}
	b, err := read(replay, 1)
	if err != nil {
		return Comparison{}, err
	}
	c := Comparison{Requests: a.total * copies, Replayed: b.total, Setup: b.others}
	seconds := int(a.last / 1e6)
	c.Dispersion, c.ReplayedDispersion = Dispersion(a.bins, seconds), Dispersion(b.bins, seconds)
	if copies > 1 { // the copies are shifted at random, so the expected dispersion is unknown
		c.Dispersion = c.ReplayedDispersion
	}
	c.DispersionError = DispersionError(c.Dispersion, c.ReplayedDispersion)
	for key, n := range b.groups {
		if a.groups[key] == 0 {
			c.Groups = append(c.Groups, GroupComparison{Verb: key.verb, Resource: key.resource, Actor: key.actor, Replayed: n, Error: 1})
		}
	}
	for key, n := range a.groups {
		g := GroupComparison{Verb: key.verb, Resource: key.resource, Actor: key.actor, Requests: n * copies, Replayed: b.groups[key]}
		g.Error = math.Abs(float64(g.Replayed-g.Requests)) / float64(g.Requests)
		c.Groups = append(c.Groups, g)
	}
	slices.SortFunc(c.Groups, func(x, y GroupComparison) int {
		return cmp.Or(cmp.Compare(y.Error, x.Error), cmp.Compare(y.Requests, x.Requests), cmp.Compare(x.Verb, y.Verb), cmp.Compare(x.Resource, y.Resource), cmp.Compare(x.Actor, y.Actor))
	})
	if len(c.Groups) > 0 {
		c.RateError = c.Groups[0].Error
	}
	return c, nil
}

type comparedKey struct{ verb, resource, actor string }

// compared holds the numbers of requests in one recording file.
type compared struct {
	groups        map[comparedKey]int64
	bins          []int32 // number of requests in each second
	total, others int64   // others counts requests of clients that are not part of the replay
	last          Micros  // time from the first to the last request
}

// add counts a request. at is the time since the first request.
func (c *compared) add(key comparedKey, at Micros) {
	c.total++
	c.groups[key]++
	for len(c.bins) <= int(at/1e6) {
		c.bins = append(c.bins, 0)
	}
	c.bins[at/1e6]++
}

// renewal is a request that renews a Lease. A replay sends it at its recorded interval, even if the recording is replayed
// faster.
type renewal struct {
	key comparedKey
	at  Micros
}

// read counts the requests in a recording file. It uses the times at which a replay with the given speed would send them.
func read(path string, speed float64) (*compared, error) {
	r, err := Open(path)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	users := make([]string, len(r.header.Actors))
	ofReplay := make([]bool, len(users))
	for i, a := range r.header.Actors {
		users[i], ofReplay[i] = a.recorded()
	}
	only := slices.Contains(ofReplay, true)
	if !(float64(r.header.Length)/speed <= float64(Longest.Microseconds())) {
		return nil, exitcode.Usagef("recording %s: at speed %g, the replay takes longer than 31 days (no recording is longer)", path, speed)
	}
	c := &compared{groups: map[comparedKey]int64{}}
	var renewals []renewal
	first, length := Micros(-1), Micros(0)
	for next, err := range r.Requests() {
		if err != nil {
			return nil, err
		}
		if only && !ofReplay[next.Actor] {
			c.others++
			continue
		}
		if first < 0 {
			first = next.At
		}
		key := comparedKey{next.Verb, next.Object(), users[next.Actor]}
		length = next.At - first + 1
		c.last = Micros(float64(length-1) / speed)
		if RenewsLease(next.Verb, next.Group, next.Resource) && speed != 1 {
			renewals = append(renewals, renewal{key, length - 1})
			continue
		}
		c.add(key, c.last)
	}
	for _, r := range renewals {
		for at := r.at; at <= c.last; at += length {
			c.add(r.key, at)
		}
	}
	return c, nil
}
