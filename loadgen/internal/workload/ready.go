package workload

import (
	"maps"
	"slices"
	"time"

	"github.com/stormglass/stormglass/internal/bools"
)

// podsReady reports whether each named workload has all its pods Ready (see tracker.whole). Without names, it checks all
// workloads.
func (t *tracker) podsReady(names ...string) bool {
	for name, d := range t.deployments {
		if awaited(name, names) && !t.whole(d) {
			return false
		}
	}
	return true
}

func awaited(name string, names []string) bool {
	return len(names) == 0 || slices.Contains(names, name)
}

// allPodsReady reports whether podsReady is true and the statuses of the workloads confirm it, by the rule of `kubectl
// rollout status`.
func (t *tracker) allPodsReady(names ...string) bool {
	if !t.podsReady(names...) {
		return false
	}
	for name, d := range t.deployments {
		if !awaited(name, names) {
			continue
		}
		if d.generation == deleted {
			if d.exists {
				return false
			}
			continue
		}
		if !d.exists || !t.agrees(d) {
			return false
		}
	}
	return true
}

// deleted is the value of deployment.generation for a workload that is being deleted.
const deleted = -1

func (t *tracker) nodesReady(names []string) bool {
	return !slices.ContainsFunc(names, func(name string) bool {
		n := t.nodes[name]
		return n == nil || !n.ready
	})
}

// notReady reports whether none of the named nodes is Ready. A deleted node is not Ready.
func (t *tracker) notReady(names []string) bool {
	return !slices.ContainsFunc(names, func(name string) bool {
		n := t.nodes[name]
		return n != nil && n.ready
	})
}

func (t *tracker) allFailedNotReady() bool {
	return len(t.failed) > 0 && t.notReady(slices.Collect(maps.Keys(t.failed)))
}

// nodesFailed records that nodes failed, and starts to measure the times until they are NotReady and until the workloads
// have recovered. A pod on a failed node counts as lost immediately, even if the API still reports it as Ready.
func (t *tracker) nodesFailed(at time.Time, names []string) {
	for _, name := range names {
		t.failed[name] = true
	}
	t.recount()
	t.startClocks(at)
	t.failures = append(t.failures, &failure{
		at: at, nodes: slices.Clone(names),
		awaitsNotReady: len(names) > 0, awaitsRecovery: !t.podsReady(),
	})
	t.check(at)
}

// nodesRecovered records that no node is failed any more. The measurement of recovery times continues.
func (t *tracker) nodesRecovered(at time.Time) {
	clear(t.failed)
	t.recount()
	t.startClocks(at)
	for _, f := range t.failures {
		f.awaitsNotReady = false
	}
}

// check ends the measurements of node failures and recoveries whose condition has become true.
func (t *tracker) check(at time.Time) {
	t.stopClocks(at)
	t.failures = slices.DeleteFunc(t.failures, func(f *failure) bool {
		if f.awaitsNotReady && t.notReady(f.nodes) {
			f.awaitsNotReady = false
			keepLargest(&t.phase.notReadyAfter, at.Sub(f.at))
		}
		if f.awaitsRecovery && t.podsReady() {
			f.awaitsRecovery = false
			keepLargest(&t.phase.recoveredAfter, at.Sub(f.at))
		}
		return !f.awaitsNotReady && !f.awaitsRecovery
	})
}

// keepLargest stores d in *seconds, unless *seconds holds a larger value from an earlier failure in the phase.
func keepLargest(seconds **float64, d time.Duration) {
	if *seconds == nil || **seconds < d.Seconds() {
		*seconds = new(d.Seconds())
	}
}

// Live is the current state of pods, namespaces and nodes, as known from the events received so far.
type Live struct {
	// PodsWanted is the number of pods that the workloads require. For most kinds, this is the requested replicas, or more if
	// a CPU demand needs more. For a DaemonSet, it is the number of nodes that have not failed. For a Job, it is the number of
	// missing completions.
	PodsWanted int64
	// PodsReady is the number of pods that are Ready, not being deleted, and not on failed nodes. The API counts pods on
	// failed nodes until the node lifecycle controller reacts; PodsReady does not.
	PodsReady int64
	// PodsPending is the number of pods that have never been Ready; PodsUnscheduled is how many of them have no node.
	// PodsTerminating is the number of pods that are being deleted.
	PodsPending, PodsUnscheduled, PodsTerminating int64
	// NamespacesTerminating counts namespaces that are being deleted. It stays 0 without Options.Namespaces.
	NamespacesTerminating int64
	// Nodes is the number of the run's nodes. NodesReady is how many of them the API reports as Ready. NodesUsed is how many
	// of them hold a pod of the run's workloads.
	Nodes, NodesReady, NodesUsed int64
}

// count adds a pod to the totals in t.live and in its workload (by = 1), or subtracts it (by = -1).
func (t *tracker) count(p *pod, by int64) {
	if p.ended && !p.deleting {
		return // the pod still exists, but its controller no longer counts it
	}
	failed, d := t.failed[p.nodeName], t.of(p.deployment)
	switch {
	case p.deleting:
		t.live.PodsTerminating += by
	case p.readyAt.IsZero():
		t.live.PodsPending += by
		if p.nodeName == "" {
			t.live.PodsUnscheduled += by
		}
	case p.ready && !failed:
		t.live.PodsReady += by
	}
	if p.nodeName != "" {
		t.held[p.nodeName] += by
		if t.held[p.nodeName] == 0 {
			delete(t.held, p.nodeName)
		}
		t.live.NodesUsed = int64(len(t.held))
	}
	switch good := p.ready && !p.deleting && p.revision == d.revision; {
	case failed && p.deleting:
		d.stuck += by
	case failed:
	case good:
		d.good += by
		if j := d.jobs[p.job]; j != nil {
			j.good += by
		}
	default:
		d.other += by
	}
}

// recount computes the totals of t.live again, for example after a node failed.
func (t *tracker) recount() {
	l := &t.live
	l.PodsReady, l.PodsPending, l.PodsUnscheduled, l.PodsTerminating, l.NodesUsed = 0, 0, 0, 0, 0
	clear(t.held)
	for _, d := range t.deployments {
		d.good, d.other, d.stuck = 0, 0, 0
		for _, j := range d.jobs {
			j.good = 0
		}
	}
	t.up = 0
	for name := range t.nodes {
		t.up += step(t.failed[name], true)
	}
	for _, p := range t.pods {
		t.count(p, 1)
	}
}

func step(before, after bool) int64 { return int64(bools.Int(after) - bools.Int(before)) }
