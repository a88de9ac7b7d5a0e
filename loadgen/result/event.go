package result

import (
	"time"

	"github.com/stormglass/stormglass/controlplane/control"
)

// Event is one line of timeline.jsonl.
type Event struct {
	Time time.Time `json:"time"` // when it happened
	Kind EventKind `json:"kind"`
	// Name is the subject: the phase, the action, the fault's kind, the component
	// that restarted or leads, the load that had to relist.
	Name   string `json:"name"`
	Detail string `json:"detail,omitempty"` // the rest, for a person
	// Fault is the ID of the fault, of EventFaultBegin and EventFaultEnd.
	Fault string `json:"fault,omitempty"`
	// On are the components that the fault hits, by name.
	On []string `json:"on,omitempty"`
	// Expected marks an exit that the plane's supervisor had asked for.
	Expected bool `json:"expected,omitempty"`
	// Handover marks the exit of a component that handed its lease over (feature gate CoordinatedLeaderElection), to be
	// started again.
	Handover bool `json:"handover,omitempty"`
}

// EventKind is the kind of an event.
type EventKind string

// The kinds of Event.
const (
	EventPhaseStart EventKind = "phase-start"
	EventPhaseEnd   EventKind = "phase-end"
	EventAction     EventKind = "action"
	EventNote       EventKind = "note"
	// EventNodeFault is a fault of simulated nodes, or their recovery: Name tells which.
	EventNodeFault EventKind = "fault"

	// Of a fault of the control plane.
	EventFaultBegin EventKind = control.EventFaultBegin
	EventFaultEnd   EventKind = control.EventFaultEnd

	// Of one component's process.
	EventExit  EventKind = control.EventExit
	EventStart EventKind = control.EventStart
	EventReady EventKind = control.EventReady // again

	// A component became the leader.
	EventLease      EventKind = control.EventLease
	EventEtcdLeader EventKind = control.EventEtcdLeader

	// Of the watches of a load.
	EventRelist     EventKind = "relist"
	EventWatchBreak EventKind = "watch-break"
)
