// Package plan resolves a scenario: it computes, once, what a run of the scenario will do and what it needs. Gates,
// previews, the target and the run read the plan. The package also finds settings that are valid but cannot work.
package plan

import (
	"maps"
	"slices"
	"time"

	"github.com/stormglass/stormglass/loadgen/internal/builtin"
	"github.com/stormglass/stormglass/loadgen/internal/condition"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

// Plan is a scenario with all facts that follow from it.
type Plan struct {
	*scenario.Scenario
	Loads  []Load // loads of the scenario, background loads first
	Faults []scenario.PlacedFault
	Hooks  []scenario.PlacedHook // hooks of all phases, in the order in which they run
	// Batches lists the scenario's own batches of objects first, then the batches of actions and loads.
	Batches []Batch
	// Defined are the custom resources that the run defines.
	Defined []scenario.CustomResource
	// Followed are the sets of objects that conditions and transitions watch, without duplicates.
	Followed []condition.Set
	// Workloads are the kinds of all workloads that deploy actions create, without duplicates.
	Workloads []string
	// Conditions are the conditions on objects, by the name of the phase that they end.
	Conditions map[string]*condition.Condition
	// StartsPods names the phases in which pods may start. These are all phases with a CronJob. Phases with another
	// workload count only if an action or fault has affected pods or nodes since the run last waited for pods.
	StartsPods []string
	// Longest is the maximum total time of all phases, without the time before and after them.
	Longest time.Duration
	// Peaks has the peak of each phase. Highest is the peak with the most requests.
	Peaks   []Peak
	Highest Peak
	// Kept is the total payload, in bytes, of all objects that loads create before they start.
	Kept float64

	unread []error // errors of batches whose files were not read
}

// Load is a load with the times at which it runs, and its size.
type Load struct {
	scenario.PlacedLoad
	// Phases are the phases in which the load runs. Watches with Hold run until the end of the run.
	Phases []scenario.Phase
	// Longest is the maximum length of the load's phase or, for a background load, of all phases. Fixed is the same, but
	// 0 if a condition ends one of these phases.
	Longest, Fixed time.Duration
	// Peak is the maximum number of requests or watch openings in one second.
	Peak float64
	// Kept is the total payload, in bytes, of the objects that the load creates before it starts.
	Kept float64

	expanded *scenario.Objects // objects of a load of kind "objects"
}

// Batch is a batch with its objects; Expanded is nil if its files were not read. It is not safe for concurrent use.
type Batch struct {
	scenario.PlacedBatch
	Expanded *scenario.Objects
}

// Of returns the plan of a scenario.
func Of(s *scenario.Scenario) *Plan {
	p := &Plan{
		Scenario: s, Faults: s.Faults(), Hooks: s.Hooks(), Defined: s.CustomResources(), StartsPods: startsPods(s),
		Conditions: map[string]*condition.Condition{}, Longest: LongestOf(s.Phases...),
	}
	for _, phase := range s.Phases {
		if phase.Until.OfObjects() {
			if c, err := phase.Until.Compile(); err == nil { // the scenario reports errors, except in a finished run
				p.Conditions[phase.Name] = c
			}
		}
		for _, a := range phase.Actions {
			if kind := a.WorkloadKind(); a.Kind == "deploy" && !slices.Contains(p.Workloads, kind) {
				p.Workloads = append(p.Workloads, kind)
			}
		}
	}
	for _, f := range p.followedAt() {
		if !slices.Contains(p.Followed, f.Set) {
			p.Followed = append(p.Followed, f.Set)
		}
	}
	made := map[string]*scenario.Objects{}
	for _, b := range s.Batches() {
		expanded, err := s.Expand(b)
		if err != nil {
			p.unread = append(p.unread, err)
		}
		p.Batches = append(p.Batches, Batch{b, expanded})
		made[b.Path] = expanded
	}
	for _, at := range s.Loads() {
		l := Load{PlacedLoad: at, Phases: s.Phases, Longest: p.Longest, expanded: made[at.Path]}
		own := s.Phases
		if i := slices.Index(s.PhaseNames(), at.Phase); i >= 0 {
			own = s.Phases[i : i+1]
			l.Phases, l.Longest = own, LongestOf(own...)
			if l.OpensWatches() && l.Hold {
				l.Phases = s.Phases[i:]
			}
		}
		if Ending(own...) == About {
			l.Fixed = l.Longest
		}
		l.Peak, l.Kept = l.peak(), l.kept()
		p.Loads, p.Kept = append(p.Loads, l), p.Kept+l.Kept
	}
	p.addPeaks()
	return p
}

func startsPods(s *scenario.Scenario) (all []string) {
	alive := map[string]string{} // kinds by name
	disturbed := false
	for i := range s.Phases {
		p := &s.Phases[i]
		disturbed = disturbed || len(p.Faults) > 0 || slices.ContainsFunc(p.Actions, func(a scenario.Action) bool { return a.Kind != "create" })
		for _, a := range p.Actions {
			switch a.Kind {
			case "deploy":
				alive[a.Name] = a.WorkloadKind()
			case "delete":
				delete(alive, a.Name)
			}
		}
		if disturbed && len(alive) > 0 || slices.Contains(slices.Collect(maps.Values(alive)), scenario.CronJob) {
			all = append(all, p.Name)
		}
		disturbed = disturbed && (!p.Until.Is("podsReady") || len(p.Of) > 0)
	}
	return all
}

// Awaited returns the names of the workloads whose pods must be ready to end the phase (condition podsReady). For a
// workload with a Count, it returns each of the numbered names. An empty result means all workloads.
func (p *Plan) Awaited(phase *scenario.Phase) []string {
	var names []string
	for i := range p.Phases {
		for _, a := range p.Phases[i].Actions {
			if a.Kind != "deploy" || !slices.Contains(phase.Of, a.Name) {
				continue
			}
			for _, each := range a.Each() {
				names = append(names, each.Name)
			}
		}
	}
	return names
}

// KindOf returns the kind of a resource that is built into Kubernetes or defined by the run. For other resources it
// returns the resource's name.
func (p *Plan) KindOf(resource string) string {
	if of, ok := builtin.Resources()[resource]; ok {
		return of.Kind
	}
	for _, c := range p.Defined {
		if c.Name == resource {
			return c.Kind
		}
	}
	return resource
}

// DefinedLater lists the resources that API servers serve only after the run has created their definitions.
func (p *Plan) DefinedLater() []string {
	all := []string{scenario.WidgetResource}
	for _, c := range p.Defined {
		all = append(all, c.Name)
	}
	return all
}
