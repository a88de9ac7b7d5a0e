package panel

import (
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/stormglass/stormglass/controlplane/control"
	"github.com/stormglass/stormglass/internal/terminal"
	"github.com/stormglass/stormglass/loadgen/internal/rundir"
	"github.com/stormglass/stormglass/loadgen/internal/timeline"
	"github.com/stormglass/stormglass/loadgen/result"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

// Run holds the time range of a run, and the phases and causes that are marked in every panel.
type Run struct {
	Span
	Phases []Mark
	// Zero is the time that the page shows as 0:00. The zero time means Start.
	Zero time.Time
	// Causes holds the faults and, in the result of Recorded, the loads.
	Causes []Cause
}

// Faults returns the causes that are faults, not loads.
func (r Run) Faults() []Mark {
	var all []Mark
	for _, c := range r.Causes {
		if !c.Load {
			all = append(all, c.Mark)
		}
	}
	return all
}

// RunOf returns the Run of a result and its timeline. Its causes are the faults. scrape is the interval between
// scrapes.
func RunOf(r result.Result, events []result.Event, scrape time.Duration) Run {
	run := Run{Span: Span{Start: r.Run.Started, End: r.Run.Ended, Scrape: scrape}}
	phases := r.Measurements.Phases
	if len(phases) > 0 {
		run.Start, run.End = phases[0].Start, phases[len(phases)-1].End
	}
	for _, p := range phases {
		run.Phases = append(run.Phases, Mark{terminal.Clean(p.Name), p.Start, p.End})
	}
	for _, f := range timeline.Of(events).Faults {
		run.Causes = append(run.Causes, Cause{Mark: Mark{terminal.Clean(f.Kind), f.Begin, f.EndOr(run.End)}, Of: kindsOf(f.On)})
	}
	return run
}

// Recorded returns the Run of a recorded run. Its causes are the faults and the loads. It does not need a result, so
// it also works for the recording of a killed run.
func Recorded(rec *rundir.Recorded) (Run, error) {
	if err := errors.Join(rec.Damage...); err != nil {
		return Run{}, err
	}
	phases := rec.Measurements.Phases
	run := RunOf(result.Result{Run: rec.Run, Measurements: rec.Measurements}, rec.Timeline, rec.Scenario.Record.Interval.D())
	run.Causes = causes(run, rec.Scenario, phases)
	return run, nil
}

// Cause is an event of a run that a panel may claim to show: a fault, or a load in a phase.
type Cause struct {
	// Mark is the time of the cause. Its name is the kind of the fault or of the load.
	Mark
	// Of lists details that a claim may name: kinds of component that a fault hits ("etcd"), ways in which a webhook
	// fails ("slow", "closed", "open"), verbs of requests, and "slow" for slow watches.
	Of []string
	// Load is true for loads and false for faults.
	Load bool
}

// is reports whether a panel claims to show the cause. A claim is the name of a cause, optionally followed by a space
// and an element of Of: "kill", "kill etcd".
func (c Cause) is(claim string) bool {
	name, of, _ := strings.Cut(claim, " ")
	return c.Name == name && (of == "" || slices.Contains(c.Of, of))
}

func kindsOf(components []string) []string {
	var all []string
	for _, name := range components {
		if kind := control.ComponentKind(name); !slices.Contains(all, kind) {
			all = append(all, kind)
		}
	}
	return all
}

// causes returns the faults of a run with details from its scenario, and the loads of its phases. It leaves out
// background loads, because they run all the time: there is no time without them for comparison.
func causes(run Run, s *scenario.Scenario, phases []result.Phase) []Cause {
	all := slices.Clone(run.Causes)
	for _, ran := range phases {
		i := slices.IndexFunc(s.Phases, func(p scenario.Phase) bool { return p.Name == ran.Name })
		if i < 0 {
			continue
		}
		for j := range all {
			if c := &all[j]; mayFail(c.Name) && !c.Begin.Before(ran.Start) && c.Begin.Before(ran.End) {
				c.Of = failures(c.Name, s.Phases[i].Faults)
			}
		}
		for _, l := range s.Phases[i].Load {
			c := Cause{Mark: Mark{l.Kind, ran.Start, ran.End}, Of: manners(l), Load: true}
			if l.Hold {
				c.End = run.End
			}
			all = append(all, c)
		}
	}
	return all
}

// mayFail reports whether faults of a kind have the scenario field `fails`, as webhook faults do.
func mayFail(kind string) bool {
	k, _ := control.FaultKindOf(kind)
	return k.Has("fails")
}

// failures returns how a webhook fails in the faults of a kind: "open", "closed" or "slow". A claim may name these
// details.
func failures(kind string, faults []scenario.Fault) []string {
	var all []string
	for _, f := range faults {
		switch {
		case f.Kind != kind:
			continue
		case f.Fails && f.Ignore:
			all = append(all, "open")
		case f.Fails:
			all = append(all, "closed")
		}
		if f.Delay > 0 {
			all = append(all, "slow")
		}
	}
	return all
}

// manners returns the details of a load that a panel's claim may name: its verbs, and "slow" for slow watches.
func manners(l scenario.Load) []string {
	var all []string
	if l.Slow.Fraction > 0 {
		all = append(all, "slow")
	}
	for _, o := range append(slices.Clone(l.Mix), l.Operation) {
		if o.Verb != "" {
			all = append(all, o.Verb)
		}
	}
	return all
}
