package plan

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/stormglass/stormglass/loadgen/scenario"
)

// fleet is the expected state of the simulated nodes in each phase, if every phase has its maximum length. Times count
// from the start of the first phase.
type fleet struct {
	elapsed            time.Duration // time at which the current phase begins
	later              int           // number of nodes that have not registered
	joins              bool          // the nodes in `later` register when the current phase begins
	down               int           // number of nodes that failed and have not recovered
	downAt             time.Duration // time at which the first node in `down` failed
	nodesFaulty        bool          // nodes failed or became slow, and have not recovered
	recoveredUnnoticed bool          // nodes recovered before the controller manager could notice the failure
	otherwiseNotReady  bool          // nodes may be NotReady for a reason other than a failure
	noticeable         bool          // the API server may report failed nodes as NotReady in the current phase
}

// registered returns the number of registered nodes. live returns the number of registered nodes that have not failed.
func (c *forecast) registered() int { return c.Nodes.Count - c.later }
func (c *forecast) live() int       { return c.registered() - c.down }

func (p *Plan) gracePeriod() time.Duration {
	if d, err := time.ParseDuration(p.ControlPlane.ControllerManager.Flags["node-monitor-grace-period"]); err == nil {
		return d
	}
	return 50 * time.Second // upstream's default
}

// heartbeats reports an error if the controller manager would consider nodes dead between two heartbeats (a renewed
// Lease or a status update).
func (c *forecast) heartbeats() {
	const flag = "node-monitor-grace-period"
	n, grace := c.Nodes, c.gracePeriod()
	if n.Count == 0 || grace > min(n.LeaseRenew, n.StatusReport).D() {
		return
	}
	at := "controlPlane.controllerManager.flags." + flag
	if c.ControlPlane.ControllerManager.Flags[flag] == "" || c.Written("nodes.leaseRenew") {
		c.report("nodes.leaseRenew", fmt.Sprintf("use less than %s, or set %s: %s", scenario.Duration(grace), at, scenario.Duration(5*n.LeaseRenew.D())),
			"nodes renew their Leases every %s, which is too late for the controller manager's %s of %s: nodes become NotReady between renewals", n.LeaseRenew, flag, scenario.Duration(grace))
		return
	}
	c.report(at, fmt.Sprintf("use at least %s, or a shorter nodes.leaseRenew", scenario.Duration(5*n.LeaseRenew.D())),
		"nodes become NotReady %s after a Lease renewal, but they renew their Leases only every %s", scenario.Duration(grace), n.LeaseRenew)
}

// notice returns the earliest time, after a node becomes silent, at which the controller manager considers it dead.
func (p *Plan) notice() time.Duration { return max(0, p.gracePeriod()-p.Nodes.LeaseRenew.D()) }

// registersAtOnce reports whether all nodes register before the first of them renews its lease.
func (p *Plan) registersAtOnce() bool {
	return float64(p.Nodes.Count)/float64(p.Nodes.RegisterRate) < p.Nodes.LeaseRenew.D().Seconds()
}

func (c *forecast) mayBeNotReady(at time.Duration) bool {
	return c.otherwiseNotReady || c.down > 0 && at-c.downAt >= c.notice()
}

// noteOtherCauses records whether anything but failed nodes may make nodes NotReady in a phase. Everything that loads
// or breaks the control plane may delay heartbeats.
func (c *forecast) noteOtherCauses(p *scenario.Phase) {
	c.otherwiseNotReady = c.otherwiseNotReady || len(p.Load) > 0 || len(p.Actions) > 0 ||
		slices.ContainsFunc(p.Faults, func(f scenario.Fault) bool { return !f.OfNodes() || !f.StopsNodes() && !f.Traits().Recovers })
}

func (c *forecast) applyFaults(path string, p *scenario.Phase) {
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
		if !f.OfNodes() || c.Nodes.Count == 0 {
			continue
		}
		if f.Traits().Adds {
			if c.later == 0 {
				c.report(at, "set nodes.later, the number of nodes that the first nodeScaleUp registers", "there are no nodes left to register")
			}
			c.later, c.joins = 0, c.joins || f.After == 0
			continue
		}
		if f.Traits().Recovers {
			if !c.nodesFaulty {
				c.report(at, "move it after a nodeFailure, nodeShutdown, slowKubelet or kubeletUnreachable", "there are no failed nodes to recover")
			}
			c.recover(c.elapsed + f.After.D())
			continue
		}
		c.nodesFaulty = true
		n := int(f.Fraction*float64(nodes) + 0.5) // rounded as in package node
		switch {
		case f.Fraction > 0 && n == 0:
			c.noticeable = true // reported here
			c.report(at+".fraction", fmt.Sprintf("use at least %s, which is one node", plain(math.Ceil(1e5/float64(nodes))/1e5)), "%s of %d nodes is less than one node", plain(f.Fraction), nodes)
		case f.StopsNodes() && c.down >= nodes:
			c.report(at, "add a nodeRecovery before it", "all nodes have already failed")
		case f.StopsNodes():
			c.silence(c.elapsed+f.After.D(), f.Traits().Announced, n)
		}
	}
	c.noticeable = c.noticeable || c.down > 0
}

// silence records that n nodes become silent at the time `at`. announced is true if the nodes themselves report that
// they stop.
func (c *forecast) silence(at time.Duration, announced bool, n int) {
	if announced {
		at -= c.notice()
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
	case at-c.downAt >= c.notice():
		c.otherwiseNotReady, c.noticeable = true, true
	default:
		c.recoveredUnnoticed = true
	}
	c.down, c.nodesFaulty = 0, false
}

// awaitReady reports an error if nodesReady cannot become true in the phase, or is certainly true when the phase
// begins. notReady is true if nodes may be NotReady when the phase begins.
func (c *forecast) awaitReady(path string, p *scenario.Phase, notReady bool) {
	at := path + ".until"
	switch {
	case notReady && c.down > 0:
		c.report(at, "add faults: [{kind: nodeRecovery}]", "nodesReady is never met: failed nodes do not recover before the end of phase %q", p.Name)
	case notReady, c.joins:
	case slices.ContainsFunc(p.Faults, scenario.Fault.StopsNodes):
		c.report(at, "wait here until: nodesNotReady, and until: nodesReady in a later phase with faults: [{kind: nodeRecovery}]",
			"nodesReady is met immediately: no node has failed when phase %q begins", p.Name)
	case c.recoveredUnnoticed || c.down > 0:
		c.report(at, "set until: nodesNotReady in the phase with the nodeFailure",
			"nodesReady is met immediately: the controller manager notices a failed node after %s at the earliest", scenario.Duration(c.notice()))
	default:
		c.report(at, "write for: 30s, or wait for nodesReady in a phase with a nodeRecovery, after a nodeFailure",
			"nodesReady is met immediately: nodes are Ready before the first phase, and nothing before phase %q makes them NotReady", p.Name)
	}
	c.otherwiseNotReady, c.recoveredUnnoticed = false, false
}

func (c *forecast) awaitNotReady(path string, p *scenario.Phase) {
	var first *scenario.Fault
	recovers := false
	for i := range p.Faults {
		f := &p.Faults[i]
		if f.StopsNodes() && (first == nil || f.Traits().Announced || f.After < first.After && !first.Traits().Announced) {
			first = f
		}
		recovers = recovers || f.Traits().Recovers
	}
	grace, notice := c.gracePeriod(), c.notice()
	after := c.downAt - c.elapsed // the phase's start
	if first != nil {
		after = max(after, first.After.D())
	}
	switch {
	case c.noticeable && first != nil && first.Traits().Announced:
	case c.noticeable && p.Within.D() < after+notice:
		c.report(path+".within", fmt.Sprintf("use at least %s; the controller manager's node-monitor-grace-period is %s", scenario.Duration(after+grace+10*time.Second), scenario.Duration(grace)),
			"nodesNotReady is never met: the controller manager notices a failed node after %s at the earliest", scenario.Duration(after+notice))
	case c.noticeable:
	case recovers:
		c.report(path+".until", "move the nodeRecovery to a later phase", "nodesNotReady is never met: the failed nodes recover before the controller manager notices the failure, which takes at least %s", scenario.Duration(notice))
	default:
		c.report(path+".until", "add faults: [{kind: nodeFailure, fraction: 0.3}]", "nodesNotReady is never met: all failed nodes have recovered before phase %q", p.Name)
	}
}
