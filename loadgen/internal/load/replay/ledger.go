package replay

import (
	"sync/atomic"

	"github.com/stormglass/stormglass/loadgen/internal/load"
	"github.com/stormglass/stormglass/loadgen/internal/recording"
)

// ledger counts the sent requests by group. A group contains the requests of one kind from one copy of a recorded
// client (actor). A ledger is safe for concurrent use.
type ledger struct {
	actors, copies int
	counts         []atomic.Int64 // requests by group, without those that never reached the API server
}

func (l *ledger) index(kind int, actor int32, copy int16) int {
	return (kind*l.actors+int(actor))*l.copies + int(copy)
}

// group returns the kind, actor and copy of group i.
func (l *ledger) group(i int) (kind, actor, copy int) {
	return i / l.copies / l.actors, i / l.copies % l.actors, i % l.copies
}

func (l *ledger) sent(kind int, e *recording.Entry, a Arrival) {
	l.counts[l.index(kind, e.Actor, a.Copy)].Add(1)
}

// ended removes a request from the count if its outcome shows that it never reached the API server.
func (l *ledger) ended(kind int, e *recording.Entry, a Arrival, o load.Outcome) {
	if o == load.Refused || o == load.GoAway || o == load.Other {
		l.counts[l.index(kind, e.Actor, a.Copy)].Add(-1)
	}
}
