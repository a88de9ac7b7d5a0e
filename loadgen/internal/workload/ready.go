package workload

import (
	"maps"
	"slices"
	"time"
)

// podsReady reports whether every named workload is whole (see tracker.whole). Without names, it checks all workloads.
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

// allPodsReady reports whether podsReady is true and the workloads' statuses agree, by the rule of `kubectl rollout
// status`.
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

// notReady reports whether none of the nodes is Ready. A deleted node is not Ready.
func (t *tracker) notReady(names []string) bool {
	return !slices.ContainsFunc(names, func(name string) bool {
		n := t.nodes[name]
		return n != nil && n.ready
	})
}

func (t *tracker) allFailedNotReady() bool {
	return len(t.failed) > 0 && t.notReady(slices.Collect(maps.Keys(t.failed)))
}

// nodesFailed records a failure of nodes and starts its time measurements. A pod on a failed node counts as lost
// immediately, even if the API still reports it as Ready.
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

// nodesRecovered ends all failures of nodes. The measurement of the recovery time continues.
func (t *tracker) nodesRecovered(at time.Time) {
	clear(t.failed)
	t.recount()
	t.startClocks(at)
	for _, f := range t.failures {
		f.awaitsNotReady = false
	}
}

// check stops the time measurements whose condition is true after the latest change.
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

// keepLargest stores d, in seconds, unless an earlier failure in the phase has a larger value.
func keepLargest(seconds **float64, d time.Duration) {
	if s := d.Seconds(); *seconds == nil || **seconds < s {
		*seconds = &s
	}
}

// Live is the current state, based on the events received so far.
type Live struct {
	// PodsWanted is the number of pods that the workloads require: the requested replicas, or the replicas that a
	// demand needs if these are more; for a DaemonSet, the nodes that have not failed; for a Job, the missing
	// completions.
	PodsWanted int64
	// PodsReady counts pods that are Ready, not being deleted, and on live nodes. Unlike the API's count, it excludes
	// pods on failed nodes immediately, without waiting for the node lifecycle controller.
	PodsReady int64
	// PodsPending counts pods that have not been Ready yet; of these, PodsUnscheduled have no node. PodsTerminating
	// counts pods that are being deleted.
	PodsPending, PodsUnscheduled, PodsTerminating int64
	// NamespacesTerminating counts namespaces that are being deleted. It stays 0 without Options.Namespaces.
	NamespacesTerminating int64
	// Nodes counts the run's nodes, NodesReady the nodes that the API reports as Ready, and NodesUsed the nodes that
	// hold a pod of the run's workloads.
	Nodes, NodesReady, NodesUsed int64
}

// count adds a pod to the sums (by = 1) or removes it (by = -1).
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

// recount recomputes the sums after a change in how pods are counted.
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

func step(before, after bool) int64 {
	switch {
	case after && !before:
		return 1
	case before && !after:
		return -1
	}
	return 0
}
