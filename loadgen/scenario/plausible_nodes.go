package scenario

import (
	"fmt"
	"math"
	"slices"
	"time"
)

// fleet is the expected state of the simulated nodes in each phase, if every phase has its maximum length. Times count
// from the start of the first phase.
type fleet struct {
	elapsed            time.Duration // when the current phase begins
	later              int           // nodes that have not registered
	joins              bool          // the later nodes register when the current phase begins
	down               int           // nodes that failed and have not recovered
	downAt             time.Duration // when the first of them failed
	nodesFaulty        bool          // nodes failed or became slow, and have not recovered
	recoveredUnnoticed bool          // nodes recovered before the controller manager could notice the failure
	otherwiseNotReady  bool          // nodes may be not Ready for a reason other than being down
	noticeable         bool          // failed nodes may be seen not Ready in the current phase
}

// registered returns the number of registered nodes. live returns the number of registered nodes that have not failed.
func (c *forecast) registered() int { return c.v.s.Nodes.Count - c.later }
func (c *forecast) live() int       { return c.registered() - c.down }

func (s *Scenario) gracePeriod() time.Duration {
	if d, err := time.ParseDuration(s.ControlPlane.ControllerManager.Flags["node-monitor-grace-period"]); err == nil {
		return d
	}
	return 50 * time.Second // upstream's default
}

// heartbeats reports an error if the controller manager would consider nodes dead between two heartbeats (a renewed
// Lease or a status update).
func (v *validator) heartbeats() {
	const flag = "node-monitor-grace-period"
	n, grace := v.s.Nodes, v.s.gracePeriod()
	if n.Count == 0 || grace > min(n.LeaseRenew, n.StatusReport).D() {
		return
	}
	at := "controlPlane.controllerManager.flags." + flag
	if v.s.ControlPlane.ControllerManager.Flags[flag] == "" || v.s.doc != nil && v.s.doc.Written("nodes.leaseRenew") {
		v.fail("nodes.leaseRenew", fmt.Sprintf("use less than %s, or set %s: %s", Duration(grace), at, Duration(5*n.LeaseRenew.D())),
			"nodes renew their Leases every %s, which is too late for the controller manager's %s of %s: nodes become NotReady between renewals", n.LeaseRenew, flag, Duration(grace))
		return
	}
	v.fail(at, fmt.Sprintf("use at least %s, or a shorter nodes.leaseRenew", Duration(5*n.LeaseRenew.D())),
		"nodes become NotReady %s after a Lease renewal, but they renew their Leases only every %s", Duration(grace), n.LeaseRenew)
}

// notice returns the earliest time, after a node becomes silent, at which the controller manager considers it dead.
func (s *Scenario) notice() time.Duration { return max(0, s.gracePeriod()-s.Nodes.LeaseRenew.D()) }

// registersAtOnce reports whether all nodes register before the first of them renews its lease.
func (s *Scenario) registersAtOnce() bool {
	return float64(s.Nodes.Count)/float64(s.Nodes.RegisterRate) < s.Nodes.LeaseRenew.D().Seconds()
}

func (c *forecast) mayBeNotReady(at time.Duration) bool {
	return c.otherwiseNotReady || c.down > 0 && at-c.downAt >= c.v.s.notice()
}

// noteOtherCauses records whether anything but failed nodes may make nodes NotReady in a phase. Everything that loads
// or breaks the control plane may delay heartbeats.
func (c *forecast) noteOtherCauses(p *Phase) {
	c.otherwiseNotReady = c.otherwiseNotReady || len(p.Load) > 0 || len(p.Actions) > 0 ||
		slices.ContainsFunc(p.Faults, func(f Fault) bool { return !f.OfNodes() || !f.StopsNodes() && !f.kind().Recovers })
}

func (c *forecast) applyFaults(path string, p *Phase) {
	c.noticeable, c.joins = false, false
	order := make([]int, len(p.Faults))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(i, j int) int { return int(p.Faults[i].After - p.Faults[j].After) })
	for _, i := range order {
		f := &p.Faults[i]
		at := fmt.Sprintf("%s.faults[%d]", path, i)
		c.disturbed = true
		nodes := c.registered()
		if !f.OfNodes() || c.v.s.Nodes.Count == 0 {
			continue
		}
		if f.kind().Adds {
			if c.later == 0 {
				c.v.fail(at, "set nodes.later, the number of nodes that the first nodeScaleUp registers", "there are no nodes left to register")
			}
			c.later, c.joins = 0, c.joins || f.After == 0
			continue
		}
		if f.kind().Recovers {
			if !c.nodesFaulty {
				c.v.fail(at, "move it after a nodeFailure, nodeShutdown, slowKubelet or kubeletUnreachable", "there are no failed nodes to recover")
			}
			c.recover(c.elapsed + f.After.D())
			continue
		}
		c.nodesFaulty = true
		n := int(f.Fraction*float64(nodes) + 0.5) // rounded as in package node
		switch {
		case f.Fraction > 0 && n == 0:
			c.noticeable = true // reported here
			c.v.fail(at+".fraction", fmt.Sprintf("use at least %s, which is one node", plain(math.Ceil(1e5/float64(nodes))/1e5)), "%s of %d nodes is less than one node", plain(f.Fraction), nodes)
		case f.StopsNodes() && c.down >= nodes:
			c.v.fail(at, "add a nodeRecovery before it", "all nodes have already failed")
		case f.StopsNodes():
			c.fail(c.elapsed+f.After.D(), f.kind().Announced, n)
		}
	}
	c.noticeable = c.noticeable || c.down > 0
}

// fail records that n nodes become silent at the given time. announced is true if the nodes themselves report that they
// stop.
func (c *forecast) fail(at time.Duration, announced bool, n int) {
	if announced {
		at -= c.v.s.notice()
		c.otherwiseNotReady, c.noticeable = true, true
	}
	if c.down == 0 {
		c.downAt = at
	}
	c.down = min(c.registered(), c.down+n)
}

func (c *forecast) recover(at time.Duration) {
	switch {
	case c.down == 0:
	case at-c.downAt >= c.v.s.notice():
		c.otherwiseNotReady, c.noticeable = true, true
	default:
		c.recoveredUnnoticed = true
	}
	c.down, c.nodesFaulty = 0, false
}

// awaitReady checks that nodesReady can become true in the phase, and may be false when the phase begins. notReady is
// true if nodes may be NotReady at that time.
func (c *forecast) awaitReady(path string, p *Phase, notReady bool) {
	at := path + ".until"
	switch {
	case notReady && c.down > 0:
		c.v.fail(at, "add faults: [{kind: nodeRecovery}]", "nodesReady is never met: failed nodes do not recover before the end of phase %q", p.Name)
	case notReady, c.joins:
	case slices.ContainsFunc(p.Faults, Fault.StopsNodes):
		c.v.fail(at, "wait here until: nodesNotReady, and until: nodesReady in a later phase with faults: [{kind: nodeRecovery}]",
			"nodesReady is met immediately: no node has failed when phase %q begins", p.Name)
	case c.recoveredUnnoticed || c.down > 0:
		c.v.fail(at, "set until: nodesNotReady in the phase with the nodeFailure",
			"nodesReady is met immediately: the controller manager notices a failed node after %s at the earliest", Duration(c.v.s.notice()))
	default:
		c.v.fail(at, "write for: 30s, or wait for nodesReady in a phase with a nodeRecovery, after a nodeFailure",
			"nodesReady is met immediately: nodes are Ready before the first phase, and nothing before phase %q makes them NotReady", p.Name)
	}
	c.otherwiseNotReady, c.recoveredUnnoticed = false, false
}

func (c *forecast) awaitNotReady(path string, p *Phase) {
	var first *Fault
	recovers := false
	for i := range p.Faults {
		f := &p.Faults[i]
		if f.StopsNodes() && (first == nil || f.kind().Announced || f.After < first.After && !first.kind().Announced) {
			first = f
		}
		recovers = recovers || f.kind().Recovers
	}
	grace, notice := c.v.s.gracePeriod(), c.v.s.notice()
	after := c.downAt - c.elapsed // the phase's start
	if first != nil {
		after = max(after, first.After.D())
	}
	switch {
	case c.noticeable && first != nil && first.kind().Announced:
	case c.noticeable && p.Within.D() < after+notice:
		c.v.fail(path+".within", fmt.Sprintf("use at least %s; the controller manager's node-monitor-grace-period is %s", Duration(after+grace+10*time.Second), Duration(grace)),
			"nodesNotReady is never met: the controller manager notices a failed node after %s at the earliest", Duration(after+notice))
	case c.noticeable:
	case recovers:
		c.v.fail(path+".until", "move the nodeRecovery to a later phase", "nodesNotReady is never met: the failed nodes recover before the controller manager notices the failure, which takes at least %s", Duration(notice))
	default:
		c.v.fail(path+".until", "add faults: [{kind: nodeFailure, fraction: 0.3}]", "nodesNotReady is never met: all failed nodes have recovered before phase %q", p.Name)
	}
}
