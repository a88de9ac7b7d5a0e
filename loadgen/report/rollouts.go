package report

import (
	"fmt"

	"github.com/stormglass/stormglass/loadgen/result"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

// rolloutTable is the way of every change of a Deployment through the control
// plane, hop by hop.
func rolloutTable(phases []result.Phase) tableView {
	t := tableView{
		Caption: "Rollouts, hop by hop",
		Head:    heads("Phase", "Rollout", "Hop", ">Pieces", ">First", ">Last", ">Added"),
		Note: "First and last piece as watches brought them, since just before the change was sent: the API's answer, steps of the ReplicaSet, pods made, bound to a node, Ready, " +
			"ready in an EndpointSlice. Added: by how much the last piece came later than at the hop before. The hops where that is large are where the time went.",
	}
	eachRollout(phases, func(p result.Phase, r result.Rollout) {
		var before *float64
		for i, h := range r.Hops {
			phase, name := clean(p.Name), rolloutName(r)
			if i > 0 {
				phase, name = "", "" // said in the rollout's first row
			}
			added := none
			if h.Last != nil && before != nil {
				added = format(scenario.Seconds, max(0, *h.Last-*before))
			}
			t.add(phase, name, clean(h.Name), count(h.Count), optional(h.First), optional(h.Last), added)
			if h.Last != nil && (before == nil || *h.Last > *before) {
				before = h.Last
			}
		}
	})
	return t
}

// eachRollout does something with each that has hops.
func eachRollout(phases []result.Phase, do func(result.Phase, result.Rollout)) {
	for _, p := range phases {
		if p.Workload == nil {
			continue
		}
		for _, r := range p.Workload.Rollouts {
			if len(r.Hops) > 0 {
				do(p, r)
			}
		}
	}
}

// rolloutName is a rollout in few words.
func rolloutName(r result.Rollout) string {
	name := fmt.Sprintf("%s %s, %s pods", clean(r.Action), clean(r.Deployment), count(r.Pods))
	if !r.Complete {
		name += ", not complete"
	}
	return name
}

// mostRollouts of a summary; the report has them all.
const mostRollouts = 5

// rollouts writes a line for each rollout: when its last piece was at each hop.
func (t *terminal) rollouts(r result.Result) {
	tab := &table{align: "frrrrrr"}
	tab.add(styled("head", "ROLLOUTS, last piece at", "API", "replicaset", "pods", "binding", "ready", "served")...)
	more := 0
	eachRollout(r.Measurements.Phases, func(_ result.Phase, r result.Rollout) {
		if len(tab.rows) > mostRollouts {
			more++
			return
		}
		row := []string{rolloutName(r)}
		for _, h := range r.Hops {
			row = append(row, optional(h.Last))
		}
		row = append(row, make([]string, len(tab.align))...)
		tab.add(plain(row[:len(tab.align)]...)...)
	})
	if len(tab.rows) == 1 {
		return
	}
	tab.dropEmpty()
	t.section(tab)
	if more > 0 {
		t.line(fmt.Sprintf("  and %d more, in the report", more))
	}
}
