package cli

import (
	"encoding/json"
	"math"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/stormglass/stormglass/loadgen/internal/archive"
	"github.com/stormglass/stormglass/loadgen/internal/cluster"
	"github.com/stormglass/stormglass/loadgen/internal/plan"
	"github.com/stormglass/stormglass/loadgen/result"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

// wantAsForetold compares a run of a catalogue scenario, on its own control plane, with a dry run with the same
// arguments: the requests that loads had due, and the objects that the API servers created.
func wantAsForetold(t *testing.T, dir string, args []string, r result.Result) {
	t.Helper()
	text, err := newLoadgen(t, slices.Concat(args, []string{"--dry-run", "-o", "json"})...).cmd.Output()
	var p cluster.Preview
	if err == nil {
		err = json.Unmarshal(text, &p)
	}
	if err != nil {
		t.Fatal(err)
	}
	planned := map[string]float64{"": p.LongestSeconds}
	for _, phase := range p.Phases {
		planned[phase.Name] = phase.LongestSeconds
	}
	for _, x := range p.Requests {
		history := slices.ContainsFunc(r.Measurements.Histories, func(h result.History) bool { return h.Load == x.Load })
		if history || x.Load == "simulated nodes" || strings.HasPrefix(x.Load, "action ") {
			continue // the result has no number of their requests
		}
		due, seconds := dueOf(r, x)
		// Requests are random, so requests in the additional time of a longer run count twice. Two seconds more are
		// allowed for its start and its end.
		longer := seconds - planned[x.Phase]
		most, least := x.PeakPerSecond*(2*max(longer, 0)+2)+3, x.PeakPerSecond*(2*max(-longer, 0)+2)+3
		switch x.Certainty {
		case plan.Exact:
			most, least = 0, 0
		case plan.AtMost:
			least = math.Inf(1)
		}
		if more := float64(due - x.Total); more > most || more < -least {
			t.Errorf("load %s: %d of %s %s were due in %.1f s, the dry run says %s %d", x.Load, due, x.Verb, x.Resource, seconds, x.Certainty, x.Total)
		}
	}
	most, least, created := map[string]float64{}, map[string]float64{}, createdIn(t, dir, catalogued(t, p.Scenario))
	for _, x := range p.Creates {
		switch n := float64(x.Count); x.Certainty {
		case plan.Exact:
			least[x.Kind], most[x.Kind] = least[x.Kind]+n, most[x.Kind]+n
		case plan.AtLeast:
			least[x.Kind], most[x.Kind] = least[x.Kind]+n, math.Inf(1)
		default:
			most[x.Kind] = math.Inf(1)
		}
	}
	for kind, n := range least {
		if created[kind] < n {
			t.Errorf("%v objects of kind %s were created, the dry run says at least %v", created[kind], kind, n)
		}
	}
	// The control plane creates no objects of these kinds on its own.
	for _, kind := range []string{"CSINode", "CronJob", "CustomResourceDefinition", "DaemonSet", "Deployment", "ReplicaSet", "StatefulSet"} {
		if created[kind] > most[kind] {
			t.Errorf("%v objects of kind %s were created, the dry run says at most %v", created[kind], kind, most[kind])
		}
	}
}

// dueOf returns the number of requests or watches of a preview's row that were due in a run, and the seconds in which
// they were due.
func dueOf(r result.Result, x cluster.PreviewRequests) (due int64, seconds float64) {
	for _, phase := range r.Measurements.Phases {
		all, ran := slices.Clone(phase.Requests), 0.0
		for _, c := range phase.Changes {
			all = append(all, c.Requests)
		}
		for _, q := range all {
			if q.Load == x.Load && q.Verb == x.Verb && q.Resource == x.Resource {
				due, ran = due+q.Offered, max(ran, q.DueSeconds)
			}
		}
		for _, w := range phase.Watches {
			if w.Load == x.Load && x.Verb == "watch" {
				due, ran = int64(w.Due), phase.Seconds() // Due counts from the start of the load
			}
		}
		seconds += ran
	}
	return due, seconds
}

// createdIn returns the number of objects that the API servers created, by kind. It takes the highest value of each
// counter, because a restarted API server counts from zero.
func createdIn(t *testing.T, dir string, s *scenario.Scenario) map[string]float64 {
	t.Helper()
	a, err := archive.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	first, last, err := a.Bounds(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	all, err := a.Instant(t.Context(), `sum by (group, resource) (max_over_time(apiserver_request_total{code="201", subresource="", dry_run=""}[`+archive.Window(first, last)+`]))`, last)
	if err != nil {
		t.Fatal(err)
	}
	created := map[string]float64{}
	for _, x := range all {
		resource := schema.GroupResource{Group: x.Labels["group"], Resource: x.Labels["resource"]}
		created[plan.Of(s).KindOf(resource.String())] += x.V
	}
	return created
}
