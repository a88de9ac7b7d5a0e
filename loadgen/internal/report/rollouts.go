package report

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/stormglass/stormglass/internal/terminal"
	"github.com/stormglass/stormglass/loadgen/internal/report/chart"
	"github.com/stormglass/stormglass/loadgen/result"
)

// rolled is a rollout with at least one hop (step of the change through the control plane). Name and slug are unique in
// the run.
type rolled struct {
	result.Rollout
	Phase, Name string // names of the phase and the rollout, as shown
	slug        string // name of the rollout in the HTML id of the drawing
}

// rolloutsView returns the drawings of the first maxFalls rollouts, and a table of all rollouts.
func rolloutsView(ctx context.Context, p *page) (any, error) {
	all := rolledOut(p.result.Measurements.Phases)
	var v struct {
		Waterfalls []chart.Waterfall
		Table      table
	}
	var more int
	if v.Waterfalls, more = waterfalls(all); len(v.Waterfalls) == 0 {
		return nil, nil
	}
	for i, r := range all[:len(v.Waterfalls)] {
		v.Waterfalls[i].Note = strings.TrimSpace(v.Waterfalls[i].Note + " " + p.clientLimit(ctx, r.Rollout))
	}
	v.Table = rolloutTable(all)
	if more > 0 {
		v.Table.Note += fmt.Sprintf(" %s of the table are not drawn.", plural(int64(more), "rollout"))
	}
	return v, nil
}

// clientLimit returns a sentence if the client-side rate limiter of kube-controller-manager delayed the creation of the
// pods: until all pods existed, at least one POST request was waiting for the limiter on average.
func (p *page) clientLimit(ctx context.Context, r result.Rollout) string {
	i := slices.IndexFunc(r.Hops, func(h result.Hop) bool { return h.Name == "pods" && h.Last != nil && *h.Last > 0 })
	if i < 0 || p.src == nil || !p.result.Run.Cluster.Bundled {
		return ""
	}
	took, end := *r.Hops[i].Last, r.Began.Add(time.Duration(*r.Hops[i].Last*float64(time.Second)))
	found, err := p.src.Range(ctx, fmt.Sprintf(`sum(increase(rest_client_rate_limiter_duration_seconds_sum{job="kube-controller-manager", verb="POST"}[%.0fms])) / %g`, took*1000, took), end, end, time.Second)
	if err != nil || len(found) == 0 || len(found[0].Points) == 0 || !(found[0].Points[0].V >= 1) {
		return ""
	}
	return fmt.Sprintf("Limited by kube-controller-manager's client (--kube-api-qps %g): until all pods existed, %s POST requests waited for its rate limiter on average.",
		cmp.Or(p.qps, 20), chart.Number(found[0].Points[0].V, 2))
}

// rolledOut returns the rollouts of a run that have hops, in order.
func rolledOut(phases []result.Phase) []rolled {
	var all []rolled
	times := map[string]int{}
	for _, p := range phases {
		if p.Workload == nil {
			continue
		}
		for _, r := range p.Workload.Rollouts {
			if len(r.Hops) == 0 {
				continue
			}
			x := rolled{Rollout: r, Phase: terminal.Clean(p.Name), Name: rolloutName(r), slug: chart.Slug("rollout " + p.Name + " " + r.Action + " " + r.Deployment)}
			if times[x.slug]++; times[x.slug] > 1 {
				x.Name += fmt.Sprintf(" (%d)", times[x.slug])
				x.slug += fmt.Sprintf("-%d", times[x.slug])
			}
			all = append(all, x)
		}
	}
	return all
}

func rolloutName(r result.Rollout) string {
	name := fmt.Sprintf("%s %s, %s pods", terminal.Clean(r.Action), terminal.Clean(r.Deployment), chart.Count(r.Pods))
	if !r.Complete {
		name += ", not complete"
	}
	return name
}

// rolloutTable returns a table that shows, for each rollout, when the objects reached each hop.
func rolloutTable(all []rolled) table {
	t := table{
		Caption: "Steps of the rollouts", Merged: 2,
		Head: heads("Phase", "Rollout", "Step", ">Objects", ">First object", ">Last object", ">Added time"),
		Note: "Steps: api write (the API server answered the change), replicaset (created or scaled), pods (created), binding (pod bound to a node), ready (pod Ready), endpointslice (pod ready in an EndpointSlice). " +
			"First object, Last object: the times when a watch saw the first and the last object reach the step. Time 0 is just before the change was sent. " +
			"Added time: from when all earlier steps were complete until this step was complete. In a deploy or scale, the step with the longest added time is the bottleneck. A rolling update scales the ReplicaSets in turns, so its step replicaset always lasts long.",
	}
	for _, r := range all {
		for i, added := range addedBy(r.Hops) {
			h := r.Hops[i]
			t.add(r.Phase, r.Name, terminal.Clean(h.Name), chart.Count(h.Count), optional(h.First), optional(h.Last), optional(added))
		}
	}
	return t
}

// addedBy returns the time that each hop added: from the last object of all earlier hops to the hop's own last object.
// The time is nil for the first hop and for hops that no object reached.
func addedBy(hops []result.Hop) []*float64 {
	added := make([]*float64, len(hops))
	var before *float64
	for i, h := range hops {
		if h.Last != nil && before != nil {
			added[i] = new(max(0, *h.Last-*before))
		}
		if h.Last != nil && (before == nil || *h.Last > *before) {
			before = h.Last
		}
	}
	return added
}

// maxRollouts is the maximum number of rollouts in a summary. The report has all rollouts.
const maxRollouts = 5

// rollouts writes a line for each rollout, with the time at which its last object reached each hop.
func (t *terminalWriter) rollouts(r result.Result) {
	hopNames := []string{"api write", "replicaset", "pods", "binding", "ready", "endpointslice"}
	tab := newTable("~ROLLOUTS, time until done", ">api write", ">replicaset", ">pods", ">binding", ">ready", ">endpointslice")
	all := rolledOut(r.Measurements.Phases)
	if len(all) == 0 {
		return
	}
	for _, r := range all[:min(len(all), maxRollouts)] {
		row := make([]string, len(tab.Head))
		row[0] = r.Name
		for _, h := range r.Hops { // a workload without a ReplicaSet or a Service does not have all hops
			if i := slices.Index(hopNames, h.Name); i >= 0 {
				row[1+i] = optional(h.Last)
			}
		}
		tab.add(row...)
	}
	tab.dropEmpty()
	t.section(tab)
	t.more(len(all)-maxRollouts, "rollout")
}

// maxFalls is the maximum number of rollouts that are drawn. The table has all rollouts.
const maxFalls = 6

// waterfalls returns the drawings of the first maxFalls rollouts, and the number of the other rollouts.
func waterfalls(all []rolled) (falls []chart.Waterfall, more int) {
	for _, r := range all[:min(len(all), maxFalls)] {
		var hops []chart.Hop
		note, most := "", 0.0
		for i, added := range addedBy(r.Hops) {
			h := r.Hops[i]
			name := terminal.Clean(h.Name)
			hops = append(hops, chart.Hop{
				Name: name, First: h.First, Last: h.Last, Count: h.Count,
				Short: h.Count < r.Pods && h.Name != "api write" && h.Name != "replicaset", // the pieces of these two hops are not pods
			})
			if added != nil && *added > most && r.Action != "rollingUpdate" {
				most = *added
				note = fmt.Sprintf("Step %q added the most time: %s.", name, seconds(most))
			}
		}
		falls = append(falls, chart.NewWaterfall(r.slug, r.Name, "in phase "+r.Phase, note, hops))
	}
	return falls, len(all) - len(falls)
}
