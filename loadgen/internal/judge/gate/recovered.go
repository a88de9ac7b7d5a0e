package gate

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/stormglass/stormglass/controlplane/control"
	"github.com/stormglass/stormglass/loadgen/result"
)

// recovered returns the functions for the objectives on faults (effects, recovery times and losses), by the name of the
// objective.
func recovered() map[string]func(evidence) finding {
	return map[string]func(evidence) finding{
		"error-window": perFaultLoad(func(l result.LoadRecovery) reading {
			return reading{value: l.ErrorWindow, atLeast: l.Open, detail: fmt.Sprintf("%d requests failed, %d were not sent; in %d intervals of 100 ms requests were slow but none failed", l.Failed, l.Unsent, l.SlowSlots)}
		}),
		"time-to-first-success": perFaultLoad(firstSuccess),
		"time-to-objective":     perFaultLoad(backInside),
		"lease-failover": perFault("a lease moved", func(of string) bool { return of != control.KindEtcd },
			func(f result.FaultRecovery) *float64 { return f.LeaseFailover }),
		"leader-failover": perFault("etcd's leader changed", func(of string) bool { return of == control.KindEtcd },
			func(f result.FaultRecovery) *float64 { return f.LeaderFailover }),
		"relist-storm": func(e evidence) finding {
			f := eachFault(relists)(e)
			if e.recovery != nil {
				for _, lack := range e.recovery.Missing { // with missing data, a count of zero proves nothing
					f.readings = append(f.readings, reading{missing: lack})
				}
			}
			return f
		},
		"lost-writes": perHistory(func(h result.History) (int64, string) {
			return h.LostWrites, fmt.Sprintf("%d acknowledged", h.Writes.Succeeded)
		}),
		"history-violations": perHistory(func(h result.History) (int64, string) {
			return h.ViolationCount, fmt.Sprintf("%d operations, %d events", h.Writes.Invoked+h.Reads.Invoked+h.CachedReads.Invoked, h.Events)
		}),
		"signal-moved": perSignal(func(s result.Signal) reading {
			if s.Moved == nil {
				return reading{missing: cmp.Or(s.Detail, "the signal was not judged")}
			}
			return reading{value: *s.Moved, detail: fmt.Sprintf("from %.4g to %.4g, noise %.2g", s.Steady.Mean, s.Extreme, s.Noise)}
		}),
		"signal-returned": perSignal(func(s result.Signal) reading {
			if s.Returned == nil {
				return reading{missing: cmp.Or(s.Detail, "the signal names no phases after the fault")}
			}
			r := reading{}
			if *s.Returned {
				r.value = 1
			}
			if s.Last != nil {
				r.detail = fmt.Sprintf("from %.4g to %.4g and then %.4g", s.Steady.Mean, s.Extreme, *s.Last)
			}
			return r
		}),
	}
}

// perHistory returns a function that reads one count of each history of client operations. If the history could not be
// checked completely, a count of zero counts as missing data.
func perHistory(count func(result.History) (int64, string)) func(evidence) finding {
	return func(e evidence) finding {
		f := finding{summed: true}
		for _, load := range loadsOf(e.expects) {
			i := slices.IndexFunc(e.m.Histories, func(h result.History) bool { return h.Load == load })
			if i < 0 {
				f.readings = append(f.readings, reading{of: load, missing: fmt.Sprintf("no history of load %s was recorded", load)})
				continue
			}
			h := e.m.Histories[i]
			n, detail := count(h)
			r := reading{of: load, value: float64(n), detail: detail, nothing: h.Writes.Succeeded == 0 && n == 0}
			if n == 0 {
				switch {
				case len(h.Unjudged) > 0:
					r.missing = fmt.Sprintf("history %s: %s", load, strings.Join(h.Unjudged, "; "))
				case h.Linearizable != "yes":
					r.missing = fmt.Sprintf("history %s: linearizable: %s", load, cmp.Or(h.Linearizable, "unknown"))
				}
			}
			f.readings = append(f.readings, r)
		}
		return f
	}
}

func perSignal(read func(result.Signal) reading) func(evidence) finding {
	return func(e evidence) finding {
		var f finding
		for _, s := range e.signals {
			if e.Signal == "" || s.Name == e.Signal {
				r := read(s)
				r.of = "signal " + s.Name
				if r.missing != "" {
					r.missing = r.of + ": " + r.missing
				}
				f.readings = append(f.readings, r)
			}
		}
		if len(f.readings) == 0 {
			f.readings = append(f.readings, reading{missing: "the run has no data of the scenario's signals"})
		}
		return f
	}
}

// eachFault returns a function that reads values of each fault that began in a phase that the gate covers.
func eachFault(read func(result.FaultRecovery) []reading) func(evidence) finding {
	return func(e evidence) finding {
		var f finding
		for _, name := range e.Over {
			if why := lack(name, e.phases); why != "" {
				f.readings = append(f.readings, reading{of: name, missing: why})
			}
		}
		if e.recovery == nil {
			f.readings = append(f.readings, reading{missing: "no fault began"})
			return f
		}
		for _, fault := range e.recovery.Faults {
			if !slices.Contains(e.Over, fault.Phase) {
				continue
			}
			for _, r := range read(fault) {
				// Do not set the phase: a phase in which no fault begins need not have a reading.
				r.of = strings.TrimSuffix(faultName(fault)+"/"+r.of, "/")
				f.readings = append(f.readings, r)
			}
		}
		if len(f.readings) == 0 {
			f.readings = append(f.readings, reading{missing: "no fault began in " + strings.Join(e.Over, ", ")})
		}
		return f
	}
}

func faultName(f result.FaultRecovery) string {
	name := fmt.Sprintf("fault %s, %s", f.ID, f.Kind)
	if len(f.On) > 0 {
		name += " on " + strings.Join(f.On, ", ")
	}
	return name
}

// perFault returns a function that reads a value that only some faults have, such as a failover time. A value is
// missing if no fault has one, or if a component for which `about` returns true had no leader after a fault.
func perFault(what string, about func(of string) bool, get func(result.FaultRecovery) *float64) func(evidence) finding {
	return func(e evidence) finding {
		f := eachFault(func(f result.FaultRecovery) []reading {
			var all []reading
			for _, of := range f.Leaderless {
				if about(of) {
					all = append(all, reading{missing: fmt.Sprintf("no new leader of %s was observed after %s", of, faultName(f))})
				}
			}
			if v := get(f); v != nil {
				return append(all, reading{value: *v})
			}
			return append(all, reading{nothing: true})
		})(e)
		if !slices.ContainsFunc(f.readings, func(r reading) bool { return !r.nothing }) {
			f.readings = append(f.readings, reading{missing: fmt.Sprintf("after the faults in %s, it was never observed that %s", strings.Join(e.Over, ", "), what)})
		}
		return f
	}
}

func perFaultLoad(read func(result.LoadRecovery) reading) func(evidence) finding {
	return func(e evidence) finding {
		f := eachFault(func(fault result.FaultRecovery) []reading {
			var all []reading
			for _, l := range fault.Loads {
				if e.Load != "" && l.Load != e.Load {
					continue
				}
				if l.Silent {
					if slices.Contains(e.expects, place{fault.Phase, l.Load}) {
						all = append(all, reading{of: l.Load, missing: fmt.Sprintf("load %s under %s: %s", l.Load, faultName(fault), l.Detail)})
					}
					continue
				}
				r := read(l)
				r.of = l.Load
				if l.AlreadyFailing {
					r.detail += "; the load was outside its bound before the fault too"
				}
				all = append(all, r)
			}
			return all
		})(e)
		for _, load := range loadsOf(e.expects) {
			if !slices.ContainsFunc(f.readings, func(r reading) bool { return strings.HasSuffix(r.of, "/"+load) }) {
				f.readings = append(f.readings, reading{of: load, missing: fmt.Sprintf("there is no data on load %s during a fault in %s", load, strings.Join(e.Over, ", "))})
			}
		}
		return f
	}
}

func relists(f result.FaultRecovery) []reading {
	s := f.Relists
	return []reading{{value: float64(s.Relists), detail: fmt.Sprintf("%d streams broke, at most %d relists in a second", s.Breaks, s.PeakPerSecond)}}
}

func firstSuccess(l result.LoadRecovery) reading {
	switch {
	case l.FirstSuccess != nil:
		return reading{value: *l.FirstSuccess, detail: fmt.Sprintf("%d failed", l.Failed)}
	case l.Failed == 0:
		return reading{detail: "nothing failed"}
	}
	return reading{value: l.ErrorWindow, failed: true, detail: fmt.Sprintf("%d requests failed, and none succeeded after that", l.Failed)}
}

func backInside(l result.LoadRecovery) reading {
	switch {
	case l.Back != nil:
		return reading{value: *l.Back, detail: l.Detail}
	case !l.Affected:
		return reading{detail: "the fault had no observed effect"}
	}
	if l.BackAtLeast != nil {
		return reading{value: *l.BackAtLeast, atLeast: true, detail: "at least: " + l.Detail}
	}
	return reading{missing: fmt.Sprintf("load %s was not seen to return inside its bound: %s", l.Load, cmp.Or(l.Detail, "the load did not run for long enough after the fault"))}
}
