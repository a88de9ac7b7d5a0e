package run

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/stormglass/stormglass/controlplane/control"
	"github.com/stormglass/stormglass/loadgen/internal/apiclient"
	"github.com/stormglass/stormglass/loadgen/result"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

const (
	// followRetry is the wait after a failed request for events.
	followRetry = 500 * time.Millisecond
	// lastEvents is the time limit to read the last events of the control plane.
	lastEvents = 500 * time.Millisecond
)

// follower writes the events of a control plane's supervisor to the timeline: starts and ends of processes, elections, and
// faults with their times and components.
type follower struct {
	journal
	supervisor supervisor      // source of the events; nil without a supervisor
	after      int64           // number of the last recorded event
	told       map[string]bool // recorded events of faults; the key is the fault's ID, a space and the kind of event
	lost       []string        // messages about faults that were not active for their whole time
	moves      moves
	restarted  func(instance string, pid int) // function to call when a component starts; nil means no function
}

// follow records the events of the control plane until ctx ends. After an error, it requests the same events again, so
// that the timeline has no gap. If the control plane ends, follow does not return; target.watch then ends the run.
func (f *follower) follow(ctx context.Context) error {
	for f.supervisor != nil && ctx.Err() == nil {
		if err := f.next(ctx); err != nil && ctx.Err() == nil {
			apiclient.Pause(ctx, followRetry)
		}
	}
	return nil
}

// last records the remaining events, after `follow` has returned.
func (f *follower) last(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, lastEvents)
	defer cancel()
	for f.supervisor != nil && f.next(ctx) == nil && ctx.Err() == nil {
	}
}

// awaitStopping waits until the supervisor begins to stop its control plane, and returns the reason. This is seconds
// earlier than the end of the last process. awaitStopping returns nil when the supervisor or ctx ends.
func awaitStopping(ctx context.Context, s supervisor) error {
	for after := int64(0); ctx.Err() == nil; {
		events, err := s.Events(ctx, after)
		if errors.Is(err, control.ErrEnded) {
			return nil
		}
		for _, e := range events {
			if after = e.Seq; e.Kind == control.EventStopping {
				return errors.New(e.Detail)
			}
		}
		if err != nil {
			apiclient.Pause(ctx, followRetry)
		}
	}
	return nil
}

func (f *follower) next(ctx context.Context) error {
	events, err := f.supervisor.Events(ctx, f.after)
	if err != nil {
		return err
	}
	var faults []control.FaultStatus
	if slices.ContainsFunc(events, ofFault) {
		if faults, err = f.supervisor.Faults(ctx); err != nil {
			return err // nothing is recorded yet, so the request can be repeated
		}
	}
	for _, e := range events {
		if f.after > 0 && e.Seq > f.after+1 {
			f.event(e.Time, result.EventNote, "events lost", fmt.Sprintf("%d events of the control plane were lost before loadgen read them", e.Seq-f.after-1))
		}
		f.after = e.Seq
		switch {
		case e.Kind == control.EventStopping:
			f.event(e.Time, result.EventNote, "the control plane stops", e.Detail)
		case !ofFault(e):
			f.recordEvent(e)
		}
	}
	for _, s := range faults {
		f.fault(s)
	}
	return nil
}

func (f *follower) recordEvent(e control.Event) {
	if e.Kind == control.EventStart {
		f.moves.started(e.Component, e.Version)
		if f.restarted != nil && e.PID != 0 {
			f.restarted(e.Component, e.PID)
		}
	}
	f.record(result.Event{Time: e.Time, Kind: result.EventKind(e.Kind), Name: e.Component, Detail: e.Detail, Expected: e.Expected, Handover: e.Handover})
}

// ofFault reports whether an event is the start or the end of a fault. The follower does not record such an event.
// Instead, it reads the supervisor's list of faults, which also names the components.
func ofFault(e control.Event) bool {
	return e.Kind == control.EventFaultBegin || e.Kind == control.EventFaultEnd
}

// fault records the start, the loss and the end of a fault. It records each only once.
func (f *follower) fault(s control.FaultStatus) {
	record := func(at time.Time, kind result.EventKind, detail string) {
		if key := s.ID + " " + string(kind); !at.IsZero() && !f.told[key] {
			f.told[key] = true
			f.record(result.Event{Time: at, Kind: kind, Name: s.Kind, Detail: detail, Fault: s.ID, On: s.On})
		}
	}
	record(s.Active, result.EventFaultBegin, faultLine(s))
	if key := s.ID + " lost"; s.Lost != "" && !f.told[key] {
		f.told[key] = true
		what := fmt.Sprintf("fault %s (%s) ended too early on some of its components: %s", s.ID, s.Kind, s.Lost)
		f.lost = append(f.lost, what)
		f.event(time.Now(), result.EventNote, "fault lost", what)
		f.step("%s", what)
	}
	detail := ""
	if s.Error != "" {
		detail = "not completely undone: " + s.Error
	}
	record(s.Ended, result.EventFaultEnd, detail)
}

func faultLine(s control.FaultStatus) string {
	var b strings.Builder
	b.WriteString(s.Kind)
	if len(s.On) > 0 {
		fmt.Fprintf(&b, " on %s", strings.Join(s.On, ", "))
	}
	if len(s.Peers) > 0 {
		fmt.Fprintf(&b, " to %s", strings.Join(s.Peers, ", "))
	}
	if s.To != "" {
		fmt.Fprintf(&b, " to %s", s.To)
	}
	if s.Resource != "" {
		fmt.Fprintf(&b, " for %s", s.Resource)
	}
	if s.Fails {
		b.WriteString(", fails")
	}
	if s.Ignore {
		b.WriteString(", policy Ignore")
	}
	if s.Webhooks > 1 {
		fmt.Fprintf(&b, ", %d webhooks", s.Webhooks)
	}
	if s.Mutates {
		b.WriteString(", mutating")
	}
	if s.Reinvoke {
		b.WriteString(", reinvoked")
	}
	if s.Delay > 0 {
		fmt.Fprintf(&b, ", %s", s.Delay)
		if s.Jitter > 0 {
			fmt.Fprintf(&b, " ± %s", s.Jitter)
		}
	}
	if s.Limit > 0 {
		fmt.Fprintf(&b, ", %d descriptors", s.Limit)
	}
	if s.Quota > 0 {
		quota, _ := scenario.Bytes(s.Quota).MarshalText() // MarshalText accepts any size
		fmt.Fprintf(&b, ", quota %s", quota)
	}
	switch {
	case s.For > 0:
		fmt.Fprintf(&b, ", for %s", s.For)
	case !s.Momentary():
		b.WriteString(", to the end of the phase")
	}
	return b.String()
}
