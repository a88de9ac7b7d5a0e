package gate

import (
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/stormglass/stormglass/loadgen/internal/rundir"
	"github.com/stormglass/stormglass/loadgen/result"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

const (
	// slowAnswer is the service time in seconds above which a response is slow: the objective of SIG Scalability for
	// mutating calls. If responses take longer, the cluster limits the load.
	slowAnswer = 1.0
	// minMissing is the minimum number of missing arrivals that counts as a shortfall. A single missing arrival may
	// be due to rounding.
	minMissing = 2
	// minLate is the minimum delay, in seconds, at which an action, or a response at the end of a phase, counts as
	// late. It is longer than the generator's usual stalls.
	minLate = 0.5
)

// deliver returns a copy of the phases of a run, and sets Deliveries in each: how much work each load and action should
// do, and how much it did. If the scenario is nil, the default bounds apply.
func deliver(s *scenario.Scenario, gates []Compiled, m result.Measurements) []result.Phase {
	d := delivering{s: s, gates: gates, m: m}
	phases := slices.Clone(m.Phases)
	for i, p := range phases {
		phases[i].Deliveries = slices.Concat(d.requests(p), d.watches(p), d.actions(p), d.overall(i))
	}
	return phases
}

type delivering struct {
	s     *scenario.Scenario
	gates []Compiled
	m     result.Measurements
}

// least returns the minimum share of its work that a load must achieve in a phase: the load's own bound, if it has one.
// Otherwise it is the lower one of two bounds: the bound of the scenario, and the bound of a gate on the objective
// "achieved".
func (d delivering) least(phase, load string) float64 {
	var own *scenario.Bound
	if d.s != nil {
		for _, l := range d.s.Loads() {
			if l.Name == load {
				own = l.MinAchieved
			}
		}
	}
	least, _ := d.s.LeastAchieved(own)
	for _, g := range d.gates {
		if own == nil && g.objective.Name == "achieved" && g.op == ">=" && (g.Load == "" || g.Load == load) && slices.Contains(g.Over, phase) {
			least = min(least, g.bound)
		}
	}
	return least
}

// recorded returns the share of requests with each status code in the recording that a load replays. ok is false if the
// load is not a replay.
func (d delivering) recorded(load string) (shares map[string]float64, ok bool) {
	i := slices.IndexFunc(d.m.Replays, func(r result.Replay) bool { return r.Load == load })
	if i < 0 {
		return nil, false
	}
	total := 0.0
	shares = map[string]float64{}
	for _, kind := range d.m.Replays[i].Kinds {
		for code, n := range kind.RecordedCodes {
			shares[code] += float64(n)
			total += float64(n)
		}
	}
	for code := range shares {
		shares[code] /= total
	}
	return shares, true
}

// answeredAsTraced returns how many refused requests of a replay count as answered. All 404, 409 and 410 count, because
// they depend on the state of objects. Requests with another 4xx code count only up to the share of this code in the
// recording. A 429 never counts.
func answeredAsTraced(outcomes map[string]int64, shares map[string]float64) (n int64) {
	total := int64(0)
	for _, count := range outcomes {
		total += count
	}
	for outcome, count := range outcomes {
		switch code, err := strconv.Atoi(outcome); {
		case err != nil || code < 400 || code >= 500 || code == 429:
		case code == 404 || code == 409 || code == 410:
			n += count
		default:
			n += min(count, int64(math.Ceil(shares[outcome]*float64(total))))
		}
	}
	return n
}

// young returns the number of arrivals so close to the end of a phase that their responses are not due yet. A response
// is due after the median service time of the phase, but not before `least` seconds, and not after slowAnswer seconds.
func young(r result.Requests, least float64) int64 {
	return int64(math.Ceil(r.OfferedRate * max(min(r.Service.P50, slowAnswer), least)))
}

// owed returns the number of responses that were due by the end of the phase. `least` is the minimum time, in seconds,
// after which a response is due (see young).
func owed(r result.Requests, least float64) int64 {
	return max(r.Offered-min(r.Backlog, young(r, least)), 0)
}

// requests returns a delivery for each load with requests in a phase. Each delivery compares the number of responses
// that were due with the number that arrived, over all verbs, resources and tenants of the load.
func (d delivering) requests(p result.Phase) (all []result.Delivery) {
	rows := rundir.Requests(p)
	var names []string
	for _, r := range rows {
		if !slices.Contains(names, r.Load) {
			names = append(names, r.Load)
		}
	}
	for _, name := range names {
		out := result.Delivery{Name: name, What: "requests", Least: d.least(p.Name, name)}
		w := work{outcomes: map[string]int64{}, load: true}
		shares, replayed := d.recorded(name)
		due := 0.0
		for _, r := range rows {
			if r.Load != name || r.DueSeconds == 0 { // no request was due at any time, so there is no rate
				continue
			}
			asked, done, failed := owed(r, minLate), r.AnsweredInPhase(), r.Sent-r.Succeeded-r.FailedLate
			if replayed {
				refused := answeredAsTraced(r.Outcomes, shares)
				done, failed = done+refused, failed-refused
			}
			overdue := max(r.Overdue-young(r, minLate), 0) // responses after the last request of a load that ended early
			done -= min(done, overdue)
			out.Asked, out.Done = out.Asked+asked, out.Done+done
			out.AskedRate, out.DoneRate = out.AskedRate+r.OfferedRate, out.DoneRate+r.AchievedRate
			w.errors += float64(max(failed, 0))
			w.backlog += float64(max(r.Backlog-(r.Offered-asked), 0) + overdue)
			w.unsent += float64(r.Unsent)
			w.late += float64(r.UnsentLate + r.FailedLate)
			due = max(due, r.DueSeconds)
			w.add(r.Service)
			for code, n := range r.Outcomes {
				w.outcomes[code] += n
			}
		}
		w.full = d.full(name, w.all/due)
		all = appendJudged(all, out, w, p)
	}
	return all
}

// full returns the name of a load's limit on requests in flight. It returns "" if on average less than a quarter of the
// limit was in use, because no request then had to wait.
func (d delivering) full(load string, inFlight float64) string {
	if d.s == nil {
		return "maxInFlight"
	}
	for _, l := range d.s.Loads() {
		switch {
		case l.Name != load:
		case inFlight < float64(l.MaxInFlight)/4:
			return ""
		default:
			return fmt.Sprintf("maxInFlight %d", l.MaxInFlight)
		}
	}
	return "maxInFlight"
}

// appendJudged appends the delivery `out` of a phase to `all`. If too little work was done, it also sets the factor
// that limited the work. If nothing was due, it appends nothing.
func appendJudged(all []result.Delivery, out result.Delivery, w work, p result.Phase) []result.Delivery {
	if out.Asked == 0 {
		return all
	}
	out.Share = min(float64(out.Done)/float64(out.Asked), 1)
	w.missing = float64(out.Asked - out.Done)
	least := float64(minMissing)
	if out.What == "rounds" {
		least = 1 // a single missing round is not a rounding error
	}
	if w.missing >= least {
		out.Limit, out.Why = judgeShare(out, w, p, p.Seconds(), p.Seconds()*(1-out.Share))
	}
	return append(all, out)
}

// judgeShare returns the factor that kept a delivery's share of the demanded work below its minimum, and an explanation
// (see work.limit). Both are empty if the share reached its minimum, or if the phase was interrupted or changed by the
// user.
func judgeShare(out result.Delivery, w work, p result.Phase, during, late float64) (limit, why string) {
	if out.Share >= out.Least || p.Interrupted || p.Steered() {
		return "", ""
	}
	return w.limit(p, out.Least, during, late)
}

// watches returns a delivery for each load of watches in a phase. Each delivery compares how many watches should be
// open at the end of the phase with how many were. Runs of old versions did not record these numbers, and have no such
// deliveries.
func (d delivering) watches(p result.Phase) (all []result.Delivery) {
	for _, seen := range p.Watches {
		w := work{errors: float64(seen.Failed), backlog: float64(max(seen.Due-seen.Open, 0)), outcomes: seen.Failures}
		w.add(seen.OpenLatency)
		out := result.Delivery{Name: seen.Load, What: "watches", Asked: int64(seen.Due), Done: int64(min(seen.Open, seen.Due)), Least: d.least(p.Name, seen.Load)}
		all = appendJudged(all, out, w, p)
	}
	return all
}

// actions returns the deliveries of the actions of a phase. For each action, one delivery compares the rounds
// (executions of a repeated action) that were done with the rounds that were due, and one compares the actual rate of
// requests with the demanded rate.
func (d delivering) actions(p result.Phase) (all []result.Delivery) {
	for _, a := range p.Actions {
		path := fmt.Sprintf("phases.%s.actions[%d]", p.Name, a.Index)
		least, _ := d.s.LeastAchieved(d.ofAction(p.Name, a.Index))
		w := work{}
		w.add(a.Service)
		all = appendJudged(all, result.Delivery{Name: a.Name, Path: path, What: "rounds", Asked: a.RoundsDue, Done: a.Rounds, Least: least}, w, p)
		if a.Cut {
			w.cut = fmt.Sprintf("the phase ended after %d requests of the current round", a.Done)
			all = appendJudged(all, result.Delivery{Name: a.Name, Path: path, What: "rounds", Asked: 1, Least: least}, w, p)
		}
		if a.Rate == 0 || a.Requests == 0 {
			continue
		}
		// Subtract the wait for the last response of each round, which arrives about one service time after its request
		// was due.
		took := max(a.Seconds-float64(a.Rounds)*min(a.Service.P50, slowAnswer), a.DueSeconds)
		w.errors, w.outcomes = float64(a.Refused), map[string]int64{"429": a.Refused}
		w.full, w.queues, w.missing = fmt.Sprintf("its concurrency of %d", a.AtOnce), true, a.Rate*took-float64(a.Done)
		out := result.Delivery{
			Name: a.Name, Path: path, What: "requests", Asked: a.Requests, Done: a.Done, AskedRate: a.Rate, DoneRate: float64(a.Done) / took,
			Share: min(float64(a.Done)/took/a.Rate, 1), Least: least,
		}
		if late := w.missing / a.Rate; w.missing >= minMissing && late >= minLate {
			out.Limit, out.Why = judgeShare(out, w, p, took, late)
		}
		all = append(all, out)
	}
	return all
}

// ofAction returns the minimum share that the scenario sets for an action, or nil.
func (d delivering) ofAction(phase string, index int) *scenario.Bound {
	if d.s == nil {
		return nil
	}
	if p := d.s.Phase(phase); p != nil && index < len(p.Actions) {
		return p.Actions[index].MinAchieved
	}
	return nil
}

// overall returns the deliveries of the whole run: of the watches of replays, and of the histories of client
// operations. They belong to the last phase. If i is the index of another phase, overall returns nothing.
func (d delivering) overall(i int) (all []result.Delivery) {
	if i < len(d.m.Phases)-1 {
		return nil
	}
	p := d.m.Phases[i]
	for _, other := range d.m.Phases {
		p.Interrupted = p.Interrupted || other.Interrupted || other.Steered()
		p.Saturated = append(slices.Clone(p.Saturated), other.Saturated...)
	}
	for _, r := range d.m.Replays {
		w := work{outcomes: r.Watches.Codes, backlog: float64(r.Watches.Due - r.Watches.Opened)}
		w.add(r.Watches.OpenLatency)
		shares, _ := d.recorded(r.Load)
		done := min(r.Watches.Opened+answeredAsTraced(r.Watches.Codes, shares), r.Watches.Due)
		all = appendJudged(all, result.Delivery{Name: r.Load, What: "watches", Asked: r.Watches.Due, Done: done, Least: d.least(p.Name, r.Load)}, w, p)
	}
	for _, h := range d.m.Histories {
		w := work{full: fmt.Sprintf("the number of clients (%d)", h.Clients), unsent: float64(h.Skipped)}
		out := result.Delivery{Name: h.Load, What: "operations", Asked: h.Skipped, Least: d.least(p.Name, h.Load)}
		for _, o := range []result.HistoryOperations{h.Writes, h.Reads, h.CachedReads} {
			out.Asked += o.Invoked
			out.Done += o.Succeeded + o.Conflicts
			w.errors += float64(o.Refused + o.Unknown)
		}
		all = appendJudged(all, out, w, p)
	}
	return all
}

// undelivered returns a line for each load and action that did less work than demanded: in failures if the cluster
// was the limit, otherwise in doubts.
func undelivered(phases []result.Phase) (failures, doubts []string) {
	for _, p := range phases {
		for _, d := range p.Deliveries {
			switch d.Limit {
			case "":
			case result.LimitCluster:
				failures = append(failures, shortfall(p.Name, d))
			default:
				doubts = append(doubts, shortfall(p.Name, d))
			}
		}
	}
	return failures, doubts
}

func shortfall(phase string, d result.Delivery) string {
	what := fmt.Sprintf("load %s in %s", d.Name, phase)
	if d.Path != "" {
		what = fmt.Sprintf("%s, %s", d.Path, d.Name)
	}
	did := fmt.Sprintf("%d of the %d %s asked for", d.Done, d.Asked, d.What)
	if d.AskedRate > 0 {
		did = fmt.Sprintf("%s of the %s asked for", show(scenario.PerSec, d.DoneRate), show(scenario.PerSec, d.AskedRate))
	}
	limits := map[string]string{result.LimitGenerator: "the generator", result.LimitAsked: "the scenario", result.LimitCluster: "the cluster", result.LimitMachine: "the machine"}
	return fmt.Sprintf("%s: %s (%s); limited by %s: %s", what, did, show(scenario.Ratio, d.Share), limits[d.Limit], d.Why)
}
