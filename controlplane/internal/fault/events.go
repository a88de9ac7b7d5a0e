package fault

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/stormglass/stormglass/controlplane/control"
)

// eventsKept is the number of events that are kept. A plane in which components are killed every second has about ten
// events per second.
const eventsKept = 4096

// Events is the ordered log of a plane's events. The manager appends the events of faults; the plane appends exits,
// starts, leaders and leases. The last 4,096 events are kept. The zero value is ready to use. Methods of Events are
// safe for concurrent use.
type Events struct {
	mu      sync.Mutex
	kept    []control.Event // oldest first
	seq     int64
	closed  bool
	changed chan struct{} // closed at the next event; nil without a waiting client
}

// Append adds an event and sets its number. If the event's time is zero, it also sets the current time.
func (e *Events) Append(event control.Event) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if event.Time.IsZero() {
		event.Time = time.Now()
	}
	e.seq++
	event.Seq = e.seq
	e.kept = append(e.kept, event)
	e.kept = e.kept[max(0, len(e.kept)-eventsKept):] // append copies the rest when its array is used up
	e.wake()
}

// After returns the kept events with numbers greater than seq, oldest first. If none exist, After waits for an
// event. It returns an empty list if ctx ends first, and control.ErrEnded if the log is closed. If the first number is
// greater than seq+1, some events were dropped.
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

// after returns the kept events with numbers greater than seq or, if none exist, a channel that closes at the next
// event.
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
