package workers

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/stormglass/stormglass/loadgen/internal/latency"
	"github.com/stormglass/stormglass/loadgen/internal/load"
	"github.com/stormglass/stormglass/loadgen/result"
)

// resultsWithin is the time limit to collect the results of all workers.
const resultsWithin = 10 * time.Second

// AddTo adds the merged results of the divided loads to the phases of m, and a summary of each worker to m. If a worker
// does not reply, AddTo uses the results that the worker sent last.
func (f *Fleet) AddTo(m *result.Measurements) error {
	if f == nil || f.plan == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), resultsWithin)
	defer cancel()
	_ = f.callAll(ctx, call{Verb: verbResults}) // on an error, AddTo uses the last report
	all := make([]results, len(f.members))
	for i, w := range f.members {
		w.mu.Lock()
		all[i] = w.results
		w.mu.Unlock()
	}
	for _, at := range f.plan.Loads {
		if f.remote(at.Name) == nil {
			continue
		}
		for i := range m.Phases {
			if err := addLoad(&m.Phases[i], at.Kind, partsOf(all, at.Name, m.Phases[i].Name)); err != nil {
				return fmt.Errorf("add the results of load %s: %w", at.Name, err)
			}
		}
	}
	for i, w := range f.members {
		m.Workers = append(m.Workers, w.summary(all[i]))
	}
	f.tellSaturation(all)
	return nil
}

// AddCost adds the resource usage of the workers to the coordinator's usage in g. It adds up the CPU time. For all
// other values, it takes the maximum over the processes.
func AddCost(g *result.Generator, all []result.Worker) {
	for _, w := range all {
		o := w.Generator
		g.CPUSeconds += o.CPUSeconds
		g.GCCPU += o.GCCPU
		g.MaxRSSBytes = max(g.MaxRSSBytes, o.MaxRSSBytes)
		g.MaxGoroutines = max(g.MaxGoroutines, o.MaxGoroutines)
		g.MaxDescriptors = max(g.MaxDescriptors, o.MaxDescriptors)
		g.GCPauseP99 = max(g.GCPauseP99, o.GCPauseP99)
		g.GCPauseMax = max(g.GCPauseMax, o.GCPauseMax)
		g.BacklogMax = max(g.BacklogMax, o.BacklogMax)
		if o.SchedulingLag.P99 > g.SchedulingLag.P99 {
			g.SchedulingLag = o.SchedulingLag
		}
	}
}

// clean makes the worker's lines about exceeded resource limits safe to show.
func (r *results) clean() {
	for _, lines := range append(slices.Collect(maps.Values(r.Saturated)), r.Generator.Saturated) {
		for i := range lines {
			lines[i] = shown(lines[i])
		}
	}
}

// Saturation returns a line for each resource limit that a worker exceeded in a phase. If phase is "", it covers the
// time outside of all phases.
func (f *Fleet) Saturation(phase string) (lines []string) {
	if f == nil {
		return nil
	}
	for _, m := range f.joined() {
		m.mu.Lock()
		for _, line := range m.results.Saturated[phase] {
			lines = append(lines, fmt.Sprintf("worker %d (%s): %s", m.index, m.name, line))
		}
		m.mu.Unlock()
	}
	return lines
}

// tellSaturation tells the user which resource limits a worker exceeded, once for each limit.
func (f *Fleet) tellSaturation(all []results) {
	for i, r := range all {
		for _, phase := range slices.Sorted(maps.Keys(r.Saturated)) {
			for _, line := range r.Saturated[phase] {
				f.tell("the run cannot be judged: worker %d (%s): %s", i, f.members[i].name, line)
			}
		}
	}
}

func (m *member) summary(r results) result.Worker {
	m.mu.Lock()
	defer m.mu.Unlock()
	w := result.Worker{
		Index: m.index, Name: m.name, Generator: r.Generator,
		ClockOffset: m.clock.Offset.Abs().Seconds(), ClockUncertainty: m.clock.Uncertainty.Seconds(),
	}
	if m.lost != nil {
		w.Lost = m.lost.Why
	}
	if r.Nodes != nil {
		w.Nodes = int64(r.Nodes.Sums.Count)
	}
	for _, parts := range r.Loads {
		for i, p := range parts {
			for _, q := range p.Requests {
				w.Sent += q.Sums.Sent
				if lag, err := latency.Merged(q.Lag); err == nil {
					w.LagP99 = max(w.LagP99, lag.Latency().P99)
				}
			}
			if p.Watches != nil {
				w.Delivered += p.Watches.Sums.Delivered
				if i == len(parts)-1 {
					w.Watches += int64(p.Watches.Sums.Open)
				}
			}
		}
	}
	return w
}

// partsOf returns each worker's results of one load in one phase.
func partsOf(all []results, loadName, phase string) (parts []load.Part) {
	for _, r := range all {
		for _, p := range r.Loads[loadName] {
			if p.Phase == phase {
				parts = append(parts, p)
			}
		}
	}
	return parts
}

// addLoad merges the parts of a load and adds the result to a phase.
func addLoad(p *result.Phase, kind string, parts []load.Part) error {
	requests, err := mergeRequests(parts)
	if err != nil {
		return err
	}
	if kind != "changes" {
		p.Requests = append(p.Requests, requests...)
	} else {
		var acknowledged int64
		for _, part := range parts {
			acknowledged += part.Acknowledged
		}
		for _, r := range requests {
			p.Changes = append(p.Changes, result.Changes{Requests: r, Acknowledged: acknowledged})
		}
	}
	watches, err := mergeWatches(parts)
	if err == nil && watches != nil {
		p.Watches = append(p.Watches, *watches)
	}
	return err
}

// mergeRequests merges the requests of all parts by verb, resource, variant and tenant.
func mergeRequests(parts []load.Part) ([]result.Requests, error) {
	type key struct{ verb, resource, variant, tenant string }
	var order []key
	byKind := map[key][]load.RequestsPart{}
	for _, p := range parts {
		for _, r := range p.Requests {
			k := key{r.Sums.Verb, r.Sums.Resource, r.Sums.Variant, r.Sums.Tenant}
			if byKind[k] == nil {
				order = append(order, k)
			}
			byKind[k] = append(byKind[k], r)
		}
	}
	var all []result.Requests
	for _, k := range order {
		r, err := addRequests(byKind[k])
		if err != nil {
			return nil, err
		}
		all = append(all, r)
	}
	return all, nil
}

// addRequests adds up the workers' requests of one kind. For rates, it divides by the longest time in which requests
// were due on any worker.
func addRequests(parts []load.RequestsPart) (sum result.Requests, err error) {
	sum = parts[0].Sums
	sum.Outcomes = maps.Clone(sum.Outcomes)
	for _, p := range parts[1:] {
		s := p.Sums
		sum.Offered += s.Offered
		sum.Sent += s.Sent
		sum.Unsent += s.Unsent
		sum.Succeeded += s.Succeeded
		sum.UnsentLate += s.UnsentLate
		sum.FailedLate += s.FailedLate
		sum.Bytes += s.Bytes
		sum.Pages += s.Pages
		sum.Answered = addKnown(sum.Answered, s.Answered)
		sum.Backlog += s.Backlog
		sum.Overdue += s.Overdue
		sum.DueSeconds = max(sum.DueSeconds, s.DueSeconds)
		sum.Outcomes = addCounts(sum.Outcomes, s.Outcomes)
	}
	if sum.DueSeconds > 0 {
		sum.OfferedRate, sum.AchievedRate = float64(sum.Offered)/sum.DueSeconds, float64(sum.AnsweredInPhase())/sum.DueSeconds
	}
	for _, d := range []struct {
		to   *result.Latency
		from func(load.RequestsPart) latency.Counts
	}{
		{&sum.Latency, func(p load.RequestsPart) latency.Counts { return p.Latency }},
		{&sum.External, func(p load.RequestsPart) latency.Counts { return p.External }},
		{&sum.Lag, func(p load.RequestsPart) latency.Counts { return p.Lag }},
		{&sum.Connect, func(p load.RequestsPart) latency.Counts { return p.Connect }},
		{&sum.Service, func(p load.RequestsPart) latency.Counts { return p.Service }},
	} {
		if *d.to, err = mergeLatency(parts, d.from); err != nil {
			return sum, err
		}
	}
	return sum, nil
}

// mergeWatches adds up the workers' watches of one load. It returns nil if no part has watches.
func mergeWatches(parts []load.Part) (*result.Watches, error) {
	var all []load.WatchesPart
	for _, p := range parts {
		if p.Watches != nil {
			all = append(all, *p.Watches)
		}
	}
	if len(all) == 0 {
		return nil, nil
	}
	sum := all[0].Sums
	sum.Failures, sum.Refusals = maps.Clone(sum.Failures), maps.Clone(sum.Refusals)
	for _, p := range all[1:] {
		s := p.Sums
		sum.Wanted += s.Wanted
		sum.Open += s.Open
		sum.Due += s.Due
		sum.Failed += s.Failed
		sum.Failures, sum.Refusals = addCounts(sum.Failures, s.Failures), addCounts(sum.Refusals, s.Refusals)
		sum.Expected += s.Expected
		sum.Delivered += s.Delivered
		sum.Lost += s.Lost
		sum.Duplicated += s.Duplicated
		sum.Reordered += s.Reordered
		sum.BeforeAck += s.BeforeAck
		sum.Late += s.Late
		sum.Events += s.Events
		sum.Bookmarks += s.Bookmarks
		sum.Reconnects += s.Reconnects
		sum.Relists += s.Relists
		sum.Lossy += s.Lossy
		sum.WorstLost = max(sum.WorstLost, s.WorstLost)
		sum.Bytes += s.Bytes
		sum.Malformed += s.Malformed
		sum.Slow += s.Slow
	}
	var err error
	for _, d := range []struct {
		to   *result.Latency
		from func(load.WatchesPart) latency.Counts
	}{
		{&sum.OpenLatency, func(p load.WatchesPart) latency.Counts { return p.OpenLatency }},
		{&sum.Delivery, func(p load.WatchesPart) latency.Counts { return p.Delivery }},
		{&sum.External, func(p load.WatchesPart) latency.Counts { return p.External }},
		{&sum.SlowestPerWatch, func(p load.WatchesPart) latency.Counts { return p.SlowestPerWatch }},
	} {
		if *d.to, err = mergeLatency(all, d.from); err != nil {
			return nil, err
		}
	}
	return &sum, nil
}

func mergeLatency[T any](parts []T, from func(T) latency.Counts) (result.Latency, error) {
	var all []latency.Counts
	for _, p := range parts {
		all = append(all, from(p))
	}
	h, err := latency.Merged(all...)
	if err != nil {
		return result.Latency{}, err
	}
	return h.Latency(), nil
}

// addKnown adds two counts. It returns nil if either count is unknown.
func addKnown(a, b *int64) *int64 {
	if a == nil || b == nil {
		return nil
	}
	return new(*a + *b)
}

func addCounts(a, b map[string]int64) map[string]int64 {
	if a == nil {
		return maps.Clone(b)
	}
	for _, k := range slices.Sorted(maps.Keys(b)) {
		a[k] += b[k]
	}
	return a
}
