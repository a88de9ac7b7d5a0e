package cli

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stormglass/stormglass/internal/planetest"
	"github.com/stormglass/stormglass/loadgen/internal/spans"
)

// plantedDelays lists the phases of the scenarios in testdata. In each phase, one part of the request path is slow, and the
// named span takes the planted time in milliseconds. If Kubernetes has no span for a wait, the span that encloses the wait
// takes the time. process and span are prefixes.
var plantedDelays = []struct {
	scenario, phase, process, span string
	planted                        float64
}{
	{"planted", "webhook", "kube-apiserver-0", "HTTP POST", 30},
	{"planted", "mutating", "kube-apiserver-0", "HTTP POST", 30},
	{"planted", "fsync", "etcd-0", "txn", 25},
	{"planted", "link", "kube-apiserver-0", "etcdserverpb.KV/Txn", 2 * 20}, // in each direction
	// The filter's span encloses all later filters. The wait for a seat is in no other span.
	{"planted", "queue", "kube-apiserver-0", "priorityandfairness", 200},
	// The API server has no span for calls of the authorization webhook.
	{"planted", "authorization", "kube-apiserver-0", "authorization", 100},
	// The API server converts what it read from etcd without the request's context, so the span "Call conversion webhook"
	// is not part of the trace (webhook_converter.go in k8s.io/apiextensions-apiserver).
	{"planted", "conversion", "kube-apiserver-0", "Get etcd3", 100},
	{"planted", "aggregated", "kube-apiserver-0", "HTTP GET", 2 * 20},
	// One round trip to the fastest follower, if the API server sent the request to the leader. Another member forwards
	// the request, which takes a second round trip.
	{"planted-members", "peers", "etcd", "txn", 2 * 20},
	{"planted-members", "kms", "kube-apiserver", "TransformFromStorage", 1000},
}

// TestPlantedDelays checks that the span of the delayed part shows the delay. Among the spans that took at least the planted
// time, the fastest took at most 10% longer; other work on the machine may slow the rest. The test ignores shorter spans.
// They were not delayed: the fault had not begun, the decision or key was cached, or a seat was free.
func TestPlantedDelays(t *testing.T) {
	for _, scenario := range []string{"planted", "planted-members"} {
		t.Run(scenario, func(t *testing.T) {
			dir := filepath.Join(planetest.Dir(t), "run")
			startRun(t, "testdata/"+scenario+".yaml", "--trace=100%", "--out", dir).wait()
			_, all, err := spans.Read(dir)
			if err != nil {
				t.Fatal(err)
			}
			for _, d := range plantedDelays {
				if d.scenario != scenario {
					continue
				}
				found := criticalTimes(all, d.phase, d.process, d.span)
				i, _ := slices.BinarySearch(found, d.planted)
				if i == len(found) || found[i] > 1.1*d.planted {
					t.Errorf("%s: critical times of %s %s in ms: %.4g; want one from %g to %g", d.phase, d.process, d.span, found, d.planted, 1.1*d.planted)
				}
			}
		})
	}
}

// criticalTimes returns the times of the spans on the critical paths of a phase's traces, in milliseconds, the shortest
// first. process and span are prefixes.
func criticalTimes(all []spans.Trace, phase, process, span string) []float64 {
	var found []float64
	for i := range all {
		if all[i].Phase != phase {
			continue
		}
		for _, n := range all[i].Tree().All() {
			if strings.HasPrefix(n.Process, process) && strings.HasPrefix(n.Name, span) && n.Critical > 0 {
				found = append(found, float64(n.Critical)/1e6)
			}
		}
	}
	slices.Sort(found)
	return found
}
