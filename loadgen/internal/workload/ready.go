package workload

import (
	"maps"
	"slices"
	"time"
)

// podsReady reports whether every workload is whole. names are the workloads, all without.
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

// allPodsReady is podsReady, and the workloads' statuses agree by the rule of `kubectl rollout status`.
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

// deleted stands for the generation of a workload that is to be gone.
const deleted = -1

func (t *tracker) nodesReady(names []string) bool {
	return !slices.ContainsFunc(names, func(name string) bool {
		n := t.nodes[name]
		return n == nil || !n.ready
	})
}

// notReady: none of the nodes is Ready. A node that was deleted is not.
func (t *tracker) notReady(names []string) bool {
	return !slices.ContainsFunc(names, func(name string) bool {
		n := t.nodes[name]
		return n != nil && n.ready
	})
}

func (t *tracker) allFailedNotReady() bool {
	return len(t.failed) > 0 && t.notReady(slices.Collect(maps.Keys(t.failed)))
}

// nodesFailed starts the clocks of a failure. A pod on a failed node is lost at once, whatever the API still says.
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

// nodesRecovered ends all failures of nodes. The clock of recovery runs on.
func (t *tracker) nodesRecovered(at time.Time) {
	clear(t.failed)
	t.recount()
	t.startClocks(at)
	for _, f := range t.failures {
		f.awaitsNotReady = false
	}
}

// check looks whether what arrived just now stops a clock.
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

// keepLargest: of several failures in a phase the slowest counts.
func keepLargest(seconds **float64, d time.Duration) {
	if s := d.Seconds(); *seconds == nil || **seconds < s {
		*seconds = &s
	}
}

// Live is the state at this moment, as far as events have arrived.
type Live struct {
	// PodsWanted is the sum of replicas asked for, or that demands need if these are more; nodes that have not failed,
	// for each DaemonSet; completions of Jobs that have not been reached.
	PodsWanted int64
	// PodsReady are Ready, not being deleted, and on nodes that live, unlike the API's count within the grace
	// period.
	PodsReady int64
	// PodsPending have not been Ready yet, PodsUnscheduled of them have no node. PodsTerminating are being
	// deleted.
	PodsPending, PodsUnscheduled, PodsTerminating int64
	// NamespacesTerminating are being deleted. Without Options.Namespaces they are not counted.
	NamespacesTerminating int64
	// Nodes of the run, how many of them the API says are Ready, and how many hold a pod of the run's workloads.
	Nodes, NodesReady, NodesUsed int64
}

// count adds a pod to the sums, or takes it out of them (by = -1).
func (t *tracker) count(p *pod, by int64) {
	if p.ended && !p.deleting {
		return // it stays, Failed, but its ReplicaSet has forgotten it
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

// recount makes the sums anew, after a change of what pods are counted as.
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
