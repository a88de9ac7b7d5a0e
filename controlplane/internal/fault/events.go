package fault

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/stormglass/stormglass/controlplane/control"
)

// eventsKept is the maximum number of events in the log. A plane in which a component is killed every second has about
// ten events per second.
const eventsKept = 4096

// Events is the ordered log of a plane's last 4,096 events. The Manager appends the events of faults; the plane appends
// exits, starts, and changes of leaders and leases. The zero value is ready to use. Methods of Events are safe for
// concurrent use.
type Events struct {
	mu      sync.Mutex
	kept    []control.Event // the events in the log, oldest first
	seq     int64
	closed  bool
	changed chan struct{} // closed at the next event; nil if no client waits
}

// Append adds an event and sets its sequence number. If the event's time is zero, it also sets the current time.
func (e *Events) Append(event control.Event) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if event.Time.IsZero() {
		event.Time = time.Now()
	}
	e.seq++
	event.Seq = e.seq
	e.kept = append(e.kept, event)
	e.kept = e.kept[max(0, len(e.kept)-eventsKept):] // a later append frees the dropped events
	e.wake()
}

// After returns the events in the log with sequence numbers greater than seq, oldest first. If the log has no such
// event, After waits for one. It returns an empty list if ctx ends first, and control.ErrEnded if the log is closed. If
// the first sequence number is greater than seq+1, the log has dropped events.
func (e *Events) After(ctx context.Context, seq int64) ([]control.Event, error) {
	for {
		found, news, err := e.after(seq)
		if len(found) > 0 || err != nil {
			return found, err
		}
		select {
		case <-news:
		case <-ctx.Done():
			return nil, nil
		}
	}
}

// after returns the events with sequence numbers greater than seq. If there are no such events, it returns a channel
// that closes at the next event.
func (e *Events) after(seq int64) ([]control.Event, <-chan struct{}, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if n := min(max(e.seq-seq, 0), int64(len(e.kept))); n > 0 {
		return slices.Clone(e.kept[len(e.kept)-int(n):]), nil, nil
	}
	if e.closed {
		return nil, nil, control.ErrEnded
	}
	if e.changed == nil {
		e.changed = make(chan struct{})
	}
	return nil, e.changed, nil
}

// Close ends the log. A waiting call of After returns immediately.
func (e *Events) Close() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.closed = true
	e.wake()
}

func (e *Events) wake() {
	if e.changed != nil {
		close(e.changed)
		e.changed = nil
	}
}
