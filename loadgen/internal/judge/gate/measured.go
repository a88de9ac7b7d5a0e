package gate

import (
	"fmt"
	"slices"

	"github.com/stormglass/stormglass/loadgen/result"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

// measured returns the functions for the objectives that the generator itself measures, by the name of the objective.
func measured() map[string]func(evidence) finding {
	count := func(get func(result.Watches) int64) func(evidence) finding {
		return func(e evidence) finding {
			f := e.perWatches(func(w result.Watches) reading {
				return reading{value: float64(get(w)), nothing: w.Expected == 0, detail: fmt.Sprintf("of %d expected events", w.Expected)}
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
	return map[string]func(evidence) finding{
		"pod-startup":     startup(0.99, p99),
		"pod-startup-p50": startup(0.5, func(l result.Latency) float64 { return l.P50 }),
		"request-latency": func(e evidence) finding {
			return e.perRequests(func(r result.Requests) reading { return quantileOf(r.Latency, r.External, 0.99, p99) })
		},
		"request-latency-upper": func(e evidence) finding {
			return e.perRequests(func(r result.Requests) reading { return upperBoundOf(r.Latency, r.External) })
		},
		"request-errors": func(e evidence) finding {
			return e.ratioOf("requests failed",
				func(r result.Requests) share { return share{r.Sent - r.Succeeded, r.Sent} },
				func(r result.Requests) share {
					return share{r.Sent - r.Succeeded - r.FailedLate, r.Sent - r.FailedLate}
				})
		},
		"unsent": func(e evidence) finding {
			return e.ratioOf("due requests unsent",
				func(r result.Requests) share { return share{r.Unsent, r.Offered} },
				func(r result.Requests) share { return share{r.Unsent - r.UnsentLate, r.Offered - r.UnsentLate} })
		},
		"achieved": func(e evidence) finding {
			return e.ratioOf("due requests answered with a 2xx in their phase",
				func(r result.Requests) share { return achieved(r, 0) },
				func(r result.Requests) share { return achieved(r, r.UnsentLate+r.FailedLate) })
		},
		"watch-delivery": func(e evidence) finding {
			return e.perWatches(func(w result.Watches) reading { return quantileOf(w.Delivery, w.External, 0.99, p99) })
		},
		"watch-delivery-p999": func(e evidence) finding {
			return e.perWatches(func(w result.Watches) reading {
				return quantileOf(w.Delivery, w.External, 0.999, func(l result.Latency) float64 { return l.P999 })
			})
		},
		"watch-lost":       count(func(w result.Watches) int64 { return w.Lost }),
		"watch-duplicated": count(func(w result.Watches) int64 { return w.Duplicated }),
		"watch-reordered":  count(func(w result.Watches) int64 { return w.Reordered }),
		"watches-open": func(e evidence) finding {
			return e.perWatches(func(w result.Watches) reading {
				return reading{value: float64(w.Open) / float64(max(w.Wanted, 1)), nothing: w.Wanted == 0, detail: fmt.Sprintf("%d of %d", w.Open, w.Wanted)}
			})
		},
		"phase-duration":     func(e evidence) finding { return e.perPhase(duration) },
		"transition-latency": func(e evidence) finding { return e.perTransition(e.transitionLatency) },
		"transition-open":    func(e evidence) finding { return e.perTransition(stillOpen) },
		"time-to-not-ready": func(e evidence) finding {
			return e.sinceFailures("nodesNotReady", func(w result.Workload) *float64 { return w.NotReadyAfter })
		},
		"time-to-recover": func(e evidence) finding {
			return e.sinceFailures("podsReady", func(w result.Workload) *float64 { return w.RecoveredAfter })
		},
		"missed-heartbeats": overRun(func(m result.Measurements) reading {
			if m.Nodes == nil {
				return reading{missing: "the measurements of the nodes were not recorded"}
			}
			return reading{
				value: float64(m.Nodes.MissedByGenerator), nothing: m.Nodes.Heartbeats == 0 && m.Nodes.MissedByGenerator == 0,
				detail: fmt.Sprintf("counts only misses caused by loadgen; %d missed because of the API server, %d acknowledged", m.Nodes.MissedByServer, m.Nodes.Heartbeats),
			}
		}),
		"nodes-ready": overRun(func(m result.Measurements) reading {
			switch {
			case m.Nodes == nil:
				return reading{missing: "the time at which the nodes were Ready was not recorded"}
			case m.Nodes.ReadySeconds == 0:
				return reading{missing: "the nodes were never all Ready at the same time"}
			}
			external := new(m.Nodes.ReadySeconds - m.Nodes.ReadyStalledSeconds)
			return reading{value: m.Nodes.ReadySeconds, external: external, detail: fmt.Sprintf("%d nodes", m.Nodes.Count)}
		}),
		scenario.CustomFigure: customFigure,
		"generator-memory": overRun(func(m result.Measurements) reading {
			return reading{value: float64(m.Generator.MaxRSSBytes), nothing: m.Generator.MaxRSSBytes == 0}
		}),
	}
}

// achieved returns how many of the responses due in a phase arrived within the phase. `own` is the number of arrivals
// that the generator itself delayed, which do not count as due.
func achieved(r result.Requests, own int64) share {
	of := max(owed(r, 0)-own, 0)
	return share{min(r.AnsweredInPhase(), of), of}
}

func p99(l result.Latency) float64 { return l.P99 }

// theRun is the field `of` of a reading for the whole run.
const theRun = "the run"

// overRun returns a function that reads one value of the whole run, regardless of the gate's phases.
func overRun(read func(result.Measurements) reading) func(evidence) finding {
	return func(e evidence) finding {
		r := read(e.m)
		r.of = theRun
		return finding{readings: []reading{r}}
	}
}

func duration(p result.Phase) reading {
	r := reading{value: p.Seconds(), external: new(p.Seconds() - p.StalledSeconds)}
	switch {
	case p.Interrupted, p.Steered(): // lack reports these phases
	case p.Until != "" && !p.ConditionMet:
		r.failed, r.detail = true, fmt.Sprintf("condition %s was not met", p.Until)
	}
	return r
}

// sinceFailures returns a finding with the time from a node failure until a condition holds, for each phase that the
// gate covers.
func (e evidence) sinceFailures(condition string, get func(result.Workload) *float64) finding {
	f := e.perPhase(func(p result.Phase) reading {
		r := sinceFailure(p, condition, get)
		r.measuredIn = e.between(e.failedBefore(p.Name), p.Name)
		if r.external == nil && !r.nothing {
			r.external = new(r.value - e.stalled(r.measuredIn))
		}
		return r
	})
	f.requireEnds(e)
	return f
}

// sinceFailure returns the time from a node failure until a condition holds, as the generator measured it. If the phase
// ended earlier, the reading has `failed` set, and its value is the length of the phase.
func sinceFailure(p result.Phase, condition string, get func(result.Workload) *float64) reading {
	if p.Workload != nil {
		if v := get(*p.Workload); v != nil {
			return reading{value: *v}
		}
	}
	if p.Until == condition && !p.ConditionMet && !p.Interrupted && !p.Steered() {
		return duration(p)
	}
	return reading{nothing: true}
}

func failsNodes(p scenario.Phase) bool {
	return slices.ContainsFunc(p.Faults, scenario.Fault.StopsNodes)
}
