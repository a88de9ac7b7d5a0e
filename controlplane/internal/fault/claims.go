package fault

import (
	"fmt"
	"time"

	"github.com/stormglass/stormglass/controlplane/control"
)

// BusyError is the error of a fault that clashes with one that is in force, or is
// being begun.
type BusyError struct {
	// Kind was requested at time At; Holder has the Part of the plane that both
	// need.
	Kind, Part string
	At         time.Time
	Holder     control.FaultStatus
}

func (e *BusyError) Error() string {
	return fmt.Sprintf("%s cannot begin: %s is taken by fault %s, %s, %s; to end that: controlplane fault clear %s",
		e.Kind, e.Part, e.Holder.ID, e.Holder.Kind, e.state(), e.Holder.ID)
}

// state returns how long the other fault has the part.
func (e *BusyError) state() string {
	switch {
	case e.Holder.Error != "":
		return "which could not be undone"
	case e.Holder.Active.IsZero():
		return "which is being begun"
	case e.Holder.Momentary():
		return "until all has started again"
	case e.Holder.Ends.IsZero():
		return "until it is cleared"
	}
	return fmt.Sprintf("for another %s", max(e.Holder.Ends.Sub(e.At), 0).Round(time.Second/10))
}

// conflict returns a *BusyError for the first fault that holds a claimed part. The
// caller holds the lock.
func (m *Manager) conflict(kind string, want []control.Claim) error {
	for _, a := range m.faults {
		if !a.status.Ended.IsZero() {
			continue
		}
		if part, taken := control.Clash(want, a.claims); taken {
			return &BusyError{kind, part, time.Now(), a.status}
		}
	}
	return nil
}
