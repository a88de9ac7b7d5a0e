package fault

import (
	"fmt"
	"slices"
	"time"

	"github.com/stormglass/stormglass/controlplane/control"
)

// claim is a part of the plane that a fault works on while it is in force.
// Two faults with the same part clash if either needs it alone.
//
//	process      alone for what stops or ends the process (pause, kill,
//	             restart, etcdQuota), shared by what lives in it (slowFsync,
//	             descriptorLimit): it would be lost with the process, and an
//	             agent in a stopped process does not answer
//	fsync, limit one slowFsync and one descriptorLimit for each component
//	link         one delay or partition for each
//	disk, quota  one of the kind in the plane
//	webhook      one for each resource
type claim struct {
	part  string
	alone bool
}

func processClaim(name string, alone bool) claim { return claim{"the process of " + name, alone} }

// claimsOf are the parts that a fault on these components and links works on.
func claimsOf(f control.Fault, on []string, links []Link) []claim {
	var all []claim
	for _, name := range on {
		switch f.Kind {
		case control.FaultPause, control.FaultKill, control.FaultRestart, control.FaultQuota:
			all = append(all, processClaim(name, true))
		case control.FaultSlowFsync:
			all = append(all, processClaim(name, false), claim{"the fsync of " + name, true})
		case control.FaultDescriptors:
			all = append(all, processClaim(name, false), claim{"the descriptor limit of " + name, true})
		}
	}
	for _, l := range links {
		all = append(all, claim{"the link from " + l.From() + " to " + l.To(), true})
	}
	switch f.Kind {
	case control.FaultDiskContention:
		all = append(all, claim{"the disk", true})
	case control.FaultWebhook:
		all = append(all, claim{"the webhook for " + f.Resource, true})
	}
	return all
}

// BusyError is the error of a fault that clashes with one that is in force, or is
// being begun.
type BusyError struct {
	// Kind was asked for, At this time; Part of the plane is what both need,
	// Holder has it.
	Kind, Part string
	At         time.Time
	Holder     control.FaultStatus
}

func (e *BusyError) Error() string {
	return fmt.Sprintf("%s cannot begin: %s is taken by fault %s, %s, %s; to end that: controlplane fault clear %s",
		e.Kind, e.Part, e.Holder.ID, e.Holder.Kind, e.state(), e.Holder.ID)
}

// state says how long the other fault has the part.
func (e *BusyError) state() string {
	switch {
	case e.Holder.Error != "":
		return "which could not be undone"
	case e.Holder.Active.IsZero():
		return "which is being begun"
	case e.Holder.Kind == control.FaultRestart:
		return "until the process has started again"
	case e.Holder.Ends.IsZero():
		return "until it is cleared"
	}
	return fmt.Sprintf("for another %s", max(e.Holder.Ends.Sub(e.At), 0).Round(time.Second/10))
}

// clash is the first fault that has a part which the claims want. The caller
// holds the lock.
func (m *Manager) clash(kind string, want []claim) error {
	for _, a := range m.faults {
		if !a.status.Ended.IsZero() {
			continue
		}
		for _, w := range want {
			taken := slices.ContainsFunc(a.claims, func(has claim) bool { return has.part == w.part && (has.alone || w.alone) })
			if taken {
				return &BusyError{kind, w.part, time.Now(), a.status}
			}
		}
	}
	return nil
}
