package gate

import (
	"fmt"
	"slices"

	"github.com/stormglass/stormglass/loadgen/result"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

const ours = "Stormglass' own measurement"

// measured lists the objectives that the generator measures itself, exactly.
func measured() []Objective {
	count := func(get func(result.Watches) int64) func(evidence) finding {
		return func(e evidence) finding {
			f := e.perWatches(func(w result.Watches) reading {
				return reading{value: float64(get(w)), nothing: w.Expected == 0, detail: fmt.Sprintf("of %d expected", w.Expected)}
			})
			f.summed = true
			return f
		}
	}
	startup := func(q float64, get func(result.Latency) float64) func(evidence) finding {
		return func(e evidence) finding {
			return e.perPhase(func(p result.Phase) reading {
				if p.Workload == nil {
					return reading{nothing: true}
				}
				return quantileOf(p.Workload.Startup, p.Workload.External, q, get)
			})
		}
	}
	return []Objective{
		{
			Name: "pod-startup", client: true, Unit: scenario.Seconds, least: leastLatency, Default: "max: 5s", check: needsPods, during: (*scenario.Scenario).StartsPods,
			Source:  "Kubernetes sig-scalability, slos/pod_startup_latency.md: p99 <= 5 s for stateless pods, image pulls excluded",
			Doc:     "The exact p99 of the time from first seeing a pod until seeing it Ready, by a watch.",
			measure: startup(0.99, p99),
		},
		{
			Name: "pod-startup-p50", client: true, Unit: scenario.Seconds, least: leastLatency, Default: "max: 2s", Source: ours, check: needsPods, during: (*scenario.Scenario).StartsPods,
			Doc:     "The exact median of the same time.",
			measure: startup(0.5, func(l result.Latency) float64 { return l.P50 }),
		},
		{
			Name: "request-latency", client: true, Unit: scenario.Seconds, least: leastLatency, Default: "max: 1s", Source: ours + "; the bound is that of mutating-latency", of: scenario.RequestResults,
			Doc: "The exact p99 of requests from their intended start to the last byte of the answer, failed ones included, of the worst load and " +
				"phase. `load:` picks one load.",
			measure: func(e evidence) finding {
				return e.perRequests(func(r result.Requests) reading { return quantileOf(r.Latency, r.External, 0.99, p99) })
			},
		},
		{
			Name: "request-errors", client: true, Unit: scenario.Ratio, Default: "max: 0.1%", Source: ours, of: scenario.RequestResults,
			Doc: "Requests that were sent and not answered with a 2xx, of all that were sent.",
			measure: func(e evidence) finding {
				return e.ratioOf("requests failed",
					func(r result.Requests) share { return share{r.Sent - r.Succeeded, r.Sent} },
					func(r result.Requests) share {
						return share{r.Sent - r.Succeeded - r.FailedLate, r.Sent - r.FailedLate}
					})
			},
		},
		{
			Name: "unsent", client: true, Unit: scenario.Ratio, Default: "max: 0%", Source: ours, of: scenario.RequestResults,
			Doc: "Arrivals that could not be sent for want of a free slot under maxInFlight, of all that the schedule offered.",
			measure: func(e evidence) finding {
				return e.ratioOf("arrivals unsent",
					func(r result.Requests) share { return share{r.Unsent, r.Offered} },
					func(r result.Requests) share { return share{r.Unsent - r.UnsentLate, r.Offered - r.UnsentLate} })
			},
		},
		{
			Name: "achieved", client: true, Unit: scenario.Ratio, Default: "min: 99%", Source: ours, of: scenario.RequestResults,
			Doc: "Requests answered with a 2xx, of all that the schedule offered.",
			measure: func(e evidence) finding {
				return e.ratioOf("arrivals answered with a 2xx",
					func(r result.Requests) share { return share{r.Succeeded, r.Offered} },
					func(r result.Requests) share { return share{r.Succeeded, r.Offered - r.UnsentLate - r.FailedLate} })
			},
		},
		{
			Name: "watch-delivery", client: true, Unit: scenario.Seconds, Default: "max: 1s", Source: ours, of: scenario.DeliveryResults,
			Doc: "The exact p99 of the time from the acknowledgement of a write to its delivery on a watch, of the worst set of watches and phase.",
			measure: func(e evidence) finding {
				return e.perWatches(func(w result.Watches) reading { return quantileOf(w.Delivery, w.External, 0.99, p99) })
			},
		},
		{
			Name: "watch-delivery-p999", client: true, Unit: scenario.Seconds, Default: "max: 2s", Source: ours, of: scenario.DeliveryResults,
			Doc: "The exact p99.9 of the same time.",
			measure: func(e evidence) finding {
				return e.perWatches(func(w result.Watches) reading {
					return quantileOf(w.Delivery, w.External, 0.999, func(l result.Latency) float64 { return l.P999 })
				})
			},
		},
		{
			Name: "watch-lost", client: true, Unit: scenario.Count, Default: "max: 0", Source: ours, of: scenario.DeliveryResults,
			Doc:     "Deliveries that never came: acknowledged writes times their watches, less the first deliveries.",
			measure: count(func(w result.Watches) int64 { return w.Lost }),
		},
		{
			Name: "watch-duplicated", client: true, Unit: scenario.Count, Default: "max: 0", Source: ours, of: scenario.DeliveryResults,
			Doc:     "Deliveries of a write to a watch that had already seen it.",
			measure: count(func(w result.Watches) int64 { return w.Duplicated }),
		},
		{
			Name: "watch-reordered", client: true, Unit: scenario.Count, Default: "max: 0", Source: ours, of: scenario.DeliveryResults,
			Doc:     "Deliveries of a write that is older, by its resourceVersion, than one already delivered by the watch, of whatever object.",
			measure: count(func(w result.Watches) int64 { return w.Reordered }),
		},
		{
			Name: "watches-open", client: true, Unit: scenario.Ratio, Default: "min: 100%", Source: ours, of: scenario.WatchResults,
			Doc: "Watches established at the end of the phase, of those asked for.",
			measure: func(e evidence) finding {
				return e.perWatches(func(w result.Watches) reading {
					return reading{value: float64(w.Open) / float64(max(w.Wanted, 1)), nothing: w.Wanted == 0, detail: fmt.Sprintf("%d of %d", w.Open, w.Wanted)}
				})
			},
		},
		{
			Name: "phase-duration", client: true, Unit: scenario.Seconds, least: leastLatency, Default: "max: 5m", Source: ours,
			Doc:     "The length of a phase. One whose condition was not met fails, whatever the bound.",
			measure: func(e evidence) finding { return e.perPhase(duration) },
		},
		{
			Name: "time-to-not-ready", client: true, Unit: scenario.Seconds, least: leastLatency, Default: "max: 1m", check: needsNodeFailure, during: sinceFailing,
			Source: ours + "; upstream's --node-monitor-grace-period is 50 s",
			Doc:    "The time from a node failure until all failed nodes were seen NotReady.",
			measure: func(e evidence) finding {
				return e.sinceFailures("nodesNotReady", func(w result.Workload) *float64 { return w.NotReadyAfter })
			},
		},
		{
			Name: "time-to-recover", client: true, Unit: scenario.Seconds, Default: "max: 5m", Source: ours, check: needsNodeFailure, during: sinceFailing,
			Doc: "The time from a node failure until every Deployment was whole again.",
			measure: func(e evidence) finding {
				return e.sinceFailures("podsReady", func(w result.Workload) *float64 { return w.RecoveredAfter })
			},
		},
		{
			Name: "missed-heartbeats", Unit: scenario.Count, Default: "max: 0", Source: ours, check: needsNodes,
			Doc: "Lease renewals that the generator did not begin within one renew interval of their time, over the whole run.",
			measure: overRun(func(m result.Measurements) reading {
				if m.Nodes == nil {
					return reading{missing: "what the nodes did was not recorded"}
				}
				return reading{
					value: float64(m.Nodes.MissedByGenerator), nothing: m.Nodes.Heartbeats == 0 && m.Nodes.MissedByGenerator == 0,
					detail: fmt.Sprintf("%d renewals acknowledged", m.Nodes.Heartbeats),
				}
			}),
		},
		{
			Name: "nodes-ready", client: true, Unit: scenario.Seconds, least: leastLatency, Default: "max: 30s", Source: ours, check: needsNodes,
			Doc: "The time from the start of registration until all simulated nodes were Ready.",
			measure: overRun(func(m result.Measurements) reading {
				switch {
				case m.Nodes == nil:
					return reading{missing: "when the nodes were Ready was not recorded"}
				case m.Nodes.ReadySeconds == 0:
					return reading{missing: "the nodes were never all Ready"}
				}
				without := m.Nodes.ReadySeconds - m.Nodes.ReadyStalledSeconds
				return reading{value: m.Nodes.ReadySeconds, external: &without, detail: fmt.Sprintf("%d nodes", m.Nodes.Count)}
			}),
		},
		{
			Name: "generator-memory", Unit: scenario.Size, least: 1 << 20, Default: "max: 200MB", Source: ours,
			Doc: "The generator's largest resident set over the whole run.",
			measure: overRun(func(m result.Measurements) reading {
				return reading{value: float64(m.Generator.MaxRSSBytes), nothing: m.Generator.MaxRSSBytes == 0}
			}),
		},
	}
}

func p99(l result.Latency) float64 { return l.P99 }

// theRun names the source of an objective of the whole run.
const theRun = "the run"

// overRun makes an objective of the whole run, whatever `over` says.
func overRun(read func(result.Measurements) reading) func(evidence) finding {
	return func(e evidence) finding {
		r := read(e.m)
		r.of = theRun
		return finding{readings: []reading{r}}
	}
}

func duration(p result.Phase) reading {
	without := p.Seconds() - p.StalledSeconds
	r := reading{value: p.Seconds(), external: &without}
	switch {
	case p.Interrupted: // lack says so
	case p.Until != "" && !p.ConditionMet:
		r.failed, r.detail = true, fmt.Sprintf("%s: condition %s not met", p.Name, p.Until)
	}
	return r
}

// sinceFailures reads the times of all failures, by the phases in which their
// clocks stopped.
func (e evidence) sinceFailures(condition string, get func(result.Workload) *float64) finding {
	f := e.perPhase(func(p result.Phase) reading {
		r := sinceFailure(p, condition, get)
		r.measuredIn = e.between(e.failedBefore(p.Name), p.Name)
		if r.external == nil && !r.nothing {
			without := r.value - e.stalled(r.measuredIn)
			r.external = &without
		}
		return r
	})
	f.requireEnds(e)
	return f
}

// sinceFailure reads a time that the tracker took. A phase that waited for it
// for nothing fails with the time it waited.
func sinceFailure(p result.Phase, condition string, get func(result.Workload) *float64) reading {
	if p.Workload != nil {
		if v := get(*p.Workload); v != nil {
			return reading{value: *v}
		}
	}
	if p.Until == condition && !p.ConditionMet && !p.Interrupted {
		return duration(p)
	}
	return reading{nothing: true}
}

func failsNodes(p scenario.Phase) bool {
	return slices.ContainsFunc(p.Faults, scenario.Fault.StopsNodes)
}
