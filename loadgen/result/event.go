package result

import (
	"time"

	"github.com/stormglass/stormglass/controlplane/control"
)

// Event is one line of timeline.jsonl.
type Event struct {
	Time time.Time `json:"time"` // time of the event
	Kind EventKind `json:"kind"`
	// Name is the subject of the event: a phase, an action, a kind of fault, a component that restarted or became the
	// leader, or a load that had to relist.
	Name   string `json:"name"`
	Detail string `json:"detail,omitempty"` // details of the event, for people
	// Fault is the ID of the fault, for EventFaultBegin and EventFaultEnd.
	Fault string `json:"fault,omitempty"`
	// On lists the names of the components that the fault affects.
	On []string `json:"on,omitempty"`
	// Expected marks an exit that the control plane's supervisor requested.
	Expected bool `json:"expected,omitempty"`
	// Handover marks the exit of a component that handed over its lease (feature gate CoordinatedLeaderElection) and is
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
	// EventNodeFault is a fault of simulated nodes or their recovery, as Name says.
	EventNodeFault EventKind = "fault"

	// EventFaultBegin is the start of a fault of the control plane, EventFaultEnd its end.
	EventFaultBegin EventKind = control.EventFaultBegin
	EventFaultEnd   EventKind = control.EventFaultEnd

	// EventExit: the process of a component exited. EventStart: it was started again.
	EventExit  EventKind = control.EventExit
	EventStart EventKind = control.EventStart
	EventReady EventKind = control.EventReady // the component is ready again

	// EventLease: a component acquired a lease. EventEtcdLeader: an etcd member became the leader.
	EventLease      EventKind = control.EventLease
	EventEtcdLeader EventKind = control.EventEtcdLeader

	// EventRelist: watches of a load had to list again. EventWatchBreak: watch streams of a load ended unexpectedly.
	EventRelist     EventKind = "relist"
	EventWatchBreak EventKind = "watch-break"
)
