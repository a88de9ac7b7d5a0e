package replay

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/stormglass/stormglass/loadgen/internal/recording"
	"github.com/stormglass/stormglass/loadgen/result"
)

// Replay returns the result of the replay so far. The result is final after Run.
func (r *Load) Replay() result.Replay {
	r.mu.Lock()
	ran := r.ran
	r.mu.Unlock()
	if ran == 0 && r.start.Load() != 0 {
		ran = r.now()
	}
	o := r.op
	codes := map[[2]string]map[string]int64{}
	var offered int64
	for _, phase := range r.Requests.Results() {
		for _, seen := range phase {
			offered += seen.Offered
			key := [2]string{seen.Verb, seen.Resource}
			if codes[key] == nil {
				codes[key] = map[string]int64{}
			}
			for code, n := range seen.Outcomes {
				codes[key][code] += n
			}
		}
	}
	due := o.sent[:min(offered, int64(len(o.sent)))]
	watches := r.watches.result(ran)
	dueWatches := o.watches[:min(watches.Due, int64(len(o.watches)))]

	all := result.Replay{
		Load: r.load.Name, Speed: o.options.Speed, Copies: o.options.Copies, Actors: len(o.recording.Actors) * o.options.Copies,
		Seconds: ran.Seconds(), Scheduled: int64(len(o.all)), Watches: watches, Made: int64(r.made),
		LeftOut: o.leftOut, Mapped: o.mapped, Cut: o.cut, Refused: o.refused, VersionsUnset: o.unset.Load(), PagesRestarted: o.restarts.Load(),
	}
	kinds := o.tally(due, dueWatches)
	groups := make([]count, len(o.ledger.counts))
	for _, some := range [][]Arrival{due, dueWatches} {
		for _, a := range some {
			e := &o.recording.Entries[a.Entry]
			groups[o.ledger.index(o.actions[e.Shape].kind, e.Actor, a.Copy)].due++
		}
	}
	for i := range groups {
		groups[i].sent = o.ledger.counts[i].Load()
		kind, _, _ := o.ledger.group(i)
		kinds[kind].Sent += groups[i].sent
		all.Due, all.Sent = all.Due+groups[i].due, all.Sent+groups[i].sent
	}
	if worst, of := rateError(groups); of >= 0 {
		kind, actor, copy := o.ledger.group(of)
		all.RateError = &worst
		all.RateErrorOf = fmt.Sprintf("%s %s by %s", o.kinds[kind].Verb, o.kinds[kind].Resource, r.load.ActorUser(o.recording.Actors[actor], copy))
	}
	for i, k := range o.kinds {
		if kinds[i].Codes = codes[[2]string{k.Verb, k.Resource}]; kinds[i].Codes == nil { // watches have their codes in Watches
			kinds[i].Codes = map[string]int64{}
		}
	}
	all.Kinds = slices.DeleteFunc(kinds, func(k result.ReplayKind) bool { return k.Due == 0 })
	all.NotFound, all.Conflicts = result.ShareOf(all.Kinds, http.StatusNotFound), result.ShareOf(all.Kinds, http.StatusConflict)
	r.disperse(&all, ran, due, dueWatches)
	return all
}

// tally returns how many of the given arrivals belong to each kind of request, with their status codes in the recording.
func (p *plan) tally(all ...[]Arrival) []result.ReplayKind {
	kinds := make([]result.ReplayKind, len(p.kinds))
	for i, k := range p.kinds {
		kinds[i] = result.ReplayKind{Verb: k.Verb, Resource: k.Resource, RecordedCodes: map[string]int64{}}
	}
	for _, some := range all {
		for _, a := range some {
			e := &p.recording.Entries[a.Entry]
			k := &kinds[p.actions[e.Shape].kind]
			k.Due++
			if e.Code != 0 {
				k.RecordedCodes[strconv.Itoa(int(e.Code))]++
			}
		}
	}
	return kinds
}

// disperse adds the dispersions (see recording.Dispersion) of the due and the sent requests per second to the result. It does
// nothing if the load ran for less than minSeconds.
func (r *Load) disperse(all *result.Replay, ran time.Duration, due ...[]Arrival) {
	seconds := int(ran / time.Second)
	if seconds < minSeconds {
		return
	}
	var intended bins
	for _, some := range due {
		for _, a := range some {
			intended.add(a.At)
		}
	}
	sent := r.op.seconds.whole(seconds)
	for i, n := range r.watches.bins.whole(seconds) {
		sent[i] += n
	}
	all.DispersionDue, all.DispersionSent = recording.Dispersion(intended.whole(seconds), seconds), recording.Dispersion(sent, seconds)
	all.DispersionError = new(recording.DispersionError(all.DispersionDue, all.DispersionSent))
}

// result returns the results of the watches. `ran` is how long the load ran.
func (w *watches) result(ran time.Duration) result.ReplayWatches {
	w.mu.Lock()
	defer w.mu.Unlock()
	c := w.counts
	c.Codes = maps.Clone(c.Codes)
	c.OpenLatency = w.opened.Latency()
	for _, a := range w.op.watches[:c.Due] {
		length := w.op.recording.Entries[a.Entry].Took.D()
		if left := ran - a.At; length == 0 || length > left {
			length = left
		}
		c.DueSeconds += max(length, 0).Seconds()
	}
	return c
}
