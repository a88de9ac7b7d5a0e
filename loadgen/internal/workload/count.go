package workload

// Live is the state at this moment, as far as events have arrived.
type Live struct {
	// PodsWanted is the sum of replicas asked for.
	PodsWanted int64
	// PodsReady are Ready, not being deleted, and on nodes that live, unlike the API's count within the grace
	// period.
	PodsReady int64
	// PodsPending have not been Ready yet, PodsUnscheduled of them have no node. PodsTerminating are being
	// deleted.
	PodsPending, PodsUnscheduled, PodsTerminating int64
	// Nodes of the run, and how many of them the API says are Ready.
	Nodes, NodesReady int64
}

// count adds a pod to the sums, or takes it out of them (by = -1).
func (t *tracker) count(p *pod, by int64) {
	if p.ended && !p.deleting {
		return // it stays, Failed, but its ReplicaSet has forgotten it
	}
	failed := t.failed[p.nodeName]
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
	if failed {
		return
	}
	d := t.of(p.deployment)
	if p.ready && !p.deleting && p.revision == d.revision {
		d.good += by
	} else {
		d.other += by
	}
}

// recount makes the sums anew, after a change of what pods are counted as.
func (t *tracker) recount() {
	l := &t.live
	l.PodsReady, l.PodsPending, l.PodsUnscheduled, l.PodsTerminating = 0, 0, 0, 0
	for _, d := range t.deployments {
		d.good, d.other = 0, 0
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
