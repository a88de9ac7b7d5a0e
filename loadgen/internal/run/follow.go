package run

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/stormglass/stormglass/controlplane/control"
	"github.com/stormglass/stormglass/loadgen/result"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

const (
	// followRetry is the wait before events are asked for again after an error.
	followRetry = 500 * time.Millisecond
	// lastEvents bounds the wait for what the plane has to tell at the end.
	lastEvents = 500 * time.Millisecond
)

// follower writes what the supervisor tells of its plane into the timeline:
// faults with their own times and components, ends and starts of processes, and
// who leads.
type follower struct {
	run   *run
	after int64           // number of the last event told
	told  map[string]bool // faults by ID and kind of event
	lost  []string        // faults that were not in force all of their time
}

// follow follows the plane until ctx ends. An error would be a gap in the
// timeline, so it asks until it has an answer: a plane that has ended ends
// the run elsewhere.
func (f *follower) follow(ctx context.Context) error {
	for ctx.Err() == nil {
		if err := f.next(ctx); err != nil && ctx.Err() == nil {
			pause(ctx, followRetry)
		}
	}
	return nil
}

// last records the events that have not been followed yet.
func (f *follower) last(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, lastEvents)
	defer cancel()
	for f.next(ctx) == nil && ctx.Err() == nil {
	}
}

// next waits for events and records them.
func (f *follower) next(ctx context.Context) error {
	events, err := f.run.supervisor.Events(ctx, f.after)
	if err != nil {
		return err
	}
	var faults []control.FaultStatus
	if slices.ContainsFunc(events, ofFault) {
		if faults, err = f.run.supervisor.Faults(ctx); err != nil {
			return err // before anything is told, so that it can be asked for again
		}
	}
	for _, e := range events {
		if f.after > 0 && e.Seq > f.after+1 {
			f.run.event(e.Time, result.EventNote, "events lost", fmt.Sprintf("%d events of the control plane were forgotten before they were asked for", e.Seq-f.after-1))
		}
		f.after = e.Seq
		switch {
		case e.Kind == control.EventStopping:
			f.run.event(e.Time, result.EventNote, "the control plane stops", e.Detail)
		case !ofFault(e):
			f.run.record(result.Event{Time: e.Time, Kind: result.EventKind(e.Kind), Name: e.Component, Detail: e.Detail, Expected: e.Expected})
		}
	}
	for _, s := range faults {
		f.fault(s)
	}
	return nil
}

// ofFault are the events that the list of faults tells better: it has their
// components.
func ofFault(e control.Event) bool {
	return e.Kind == control.EventFaultBegin || e.Kind == control.EventFaultEnd
}

// fault records a fault's begin and end, once each.
func (f *follower) fault(s control.FaultStatus) {
	tell := func(at time.Time, kind result.EventKind, detail string) {
		if key := s.ID + " " + string(kind); !at.IsZero() && !f.told[key] {
			f.told[key] = true
			f.run.record(result.Event{Time: at, Kind: kind, Name: s.Kind, Detail: detail, Fault: s.ID, On: s.On})
		}
	}
	tell(s.Active, result.EventFaultBegin, faultLine(s))
	if key := s.ID + " lost"; s.Lost != "" && !f.told[key] {
		f.told[key] = true
		what := fmt.Sprintf("fault %s, %s, was not in force all of its time: it was lost: %s", s.ID, s.Kind, s.Lost)
		f.lost = append(f.lost, what)
		f.run.event(time.Now(), result.EventNote, "fault lost", what)
		f.run.step("%s", what)
	}
	detail := ""
	if s.Error != "" {
		detail = "not all was undone: " + s.Error
	}
	tell(s.Ended, result.EventFaultEnd, detail)
}

// faultLine is a fault in a line: what, on what, how much, for how long.
func faultLine(s control.FaultStatus) string {
	var b strings.Builder
	b.WriteString(s.Kind)
	if len(s.On) > 0 {
		fmt.Fprintf(&b, " on %s", strings.Join(s.On, ", "))
	}
	if len(s.Peers) > 0 {
		fmt.Fprintf(&b, " to %s", strings.Join(s.Peers, ", "))
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
		quota, _ := scenario.Bytes(s.Quota).MarshalText() // writes any size
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
