package samples

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/stormglass/stormglass/loadgen/result"
)

// quiet is the minimum time between two events of the same kind and load for the recorder to deliver the second one.
const quiet = 5 * time.Second

// Recorder counts results in slots (short intervals). It writes slots to pulse.jsonl or sends them to another recorder.
// Its methods are safe for concurrent use. A nil Recorder returns nil counters, which count nothing.
type Recorder struct {
	f     *os.File // pulse.jsonl; nil if the recorder sends its slots
	event func(result.Event)
	send  func(Slot) error
	now   func() time.Time // clock for aligned slots; nil if slots are not aligned

	mu          sync.Mutex
	follow      func(Slot) // the function passed to Follow, or nil
	merger      *merger    // merges the slots of other recorders; nil without other recorders
	from        time.Time  // start of the current slot
	requests    map[string]*Requests
	streams     map[string]*Streams
	last        map[string]time.Time // time of the last event by kind and load
	undelivered []result.Event       // events to deliver; at most one per kind and load in five seconds
	news        chan struct{}        // signals that undelivered is not empty
}

// Open creates pulse.jsonl in dir, which must not contain the file yet. The recorder calls event, if not nil, for
// relists and watch breaks of a load. In a series of such events, it calls event only for the first one.
func Open(dir string, event func(result.Event)) (*Recorder, error) {
	f, err := os.OpenFile(filepath.Join(dir, result.PulseFile), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open the samples: %w", err)
	}
	if event == nil {
		event = func(result.Event) {}
	}
	return &Recorder{
		f: f, event: event, from: time.Now(),
		requests: map[string]*Requests{}, streams: map[string]*Streams{}, last: map[string]time.Time{},
		news: make(chan struct{}, 1),
	}, nil
}

// Sending returns a recorder that calls send for each slot, including empty slots. Slots begin and end at multiples of
// Width. now returns the current time by the clock of the recorder that merges the slots.
func Sending(send func(Slot) error, now func() time.Time) *Recorder {
	return &Recorder{
		send: send, now: now, event: func(result.Event) {}, from: boundary(now()),
		requests: map[string]*Requests{}, streams: map[string]*Streams{}, last: map[string]time.Time{},
		news: make(chan struct{}, 1),
	}
}

// Merge makes the recorder merge its own slots with the slots of n recorders that Sending returned. Call Merge before
// Run.
func (r *Recorder) Merge(n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.now, r.merger, r.from = time.Now, newMerger(n+1), boundary(time.Now())
}

// Add adds a slot of another recorder to the merged slots. `of` is the index of the other recorder.
func (r *Recorder) Add(of int, s Slot) error {
	if err := s.Check(); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.writeAll(r.merger.add(of+1, s))
}

// End stops waiting for slots of another recorder. `of` is the index of the other recorder.
func (r *Recorder) End(of int) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.writeAll(r.merger.end(of + 1))
}

// Requests returns the request counter of a load.
func (r *Recorder) Requests(load string) *Requests {
	if r == nil {
		return nil
	}
	c := counterOf(&r.mu, r.requests, load)
	r.mu.Lock()
	defer r.mu.Unlock()
	if (r.follow != nil || r.send != nil) && c.spread == nil {
		c.spread = new(histogram)
	}
	return c
}

// Follow makes the recorder call f at the end of each slot, even an empty one, with the results of all loads. f must
// return quickly and must not use the Recorder. Call Follow before any call of Requests.
func (r *Recorder) Follow(f func(Slot)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.follow = f
}

// Streams returns the watch counter of a load.
func (r *Recorder) Streams(load string) *Streams {
	if r == nil {
		return nil
	}
	return counterOf(&r.mu, r.streams, load)
}

// counterOf returns the counter of a load. It creates the counter at the first call.
func counterOf[T any](mu *sync.Mutex, all map[string]*T, load string) *T {
	mu.Lock()
	defer mu.Unlock()
	if all[load] == nil {
		all[load] = new(T)
	}
	return all[load]
}

// Run ends a slot every Width until ctx ends, and then returns nil. A separate goroutine delivers events, because
// writing an event can take long while a fault keeps the disk busy. This must not delay the slots.
func (r *Recorder) Run(ctx context.Context) error {
	ctx, stop := context.WithCancel(ctx)
	var telling sync.WaitGroup
	defer telling.Wait()
	defer stop()
	telling.Go(func() {
		for {
			select {
			case <-r.news:
				r.deliverEvents()
			case <-ctx.Done():
				return
			}
		}
	})
	if r.now != nil {
		return r.runAligned(ctx)
	}
	tick := time.NewTicker(Width)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			if err := r.flush(time.Now()); err != nil {
				return err
			}
		case <-ctx.Done():
			return nil
		}
	}
}

// runAligned is like Run, but slots end at multiples of Width.
func (r *Recorder) runAligned(ctx context.Context) error {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		now := r.now()
		timer.Reset(boundary(now).Add(Width).Sub(now.Round(0)))
		select {
		case <-timer.C:
			if err := r.flush(boundary(r.now())); err != nil {
				return err
			}
		case <-ctx.Done():
			return nil
		}
	}
}

// Close writes the last slot and delivers the remaining events. Later results are lost.
func (r *Recorder) Close() error {
	now := time.Now()
	if r.now != nil { // a separate slot for the results since the last multiple of Width
		now = boundary(r.now()).Add(Width)
	}
	err := r.flush(now)
	if r.merger != nil {
		for i := range r.merger.sources {
			err = errors.Join(err, r.End(i-1))
		}
	}
	if r.f == nil {
		return err
	}
	r.deliverEvents()
	if closed := r.f.Close(); err == nil && closed != nil {
		err = fmt.Errorf("close the samples: %w", closed)
	}
	return err
}

// flush ends the current slot at the time `now`, and writes or sends it.
func (r *Recorder) flush(now time.Time) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	// Compute the length from rounded times. Otherwise, there would be gaps between slots.
	s := Slot{Begin: r.from.UnixMilli(), Requests: map[string]RequestSlot{}, Streams: map[string]StreamSlot{}}
	s.Millis = now.UnixMilli() - s.Begin
	if s.Millis <= 0 {
		return nil // the clock was set back, or the slot is shorter than 1 ms; the next slot has the results
	}
	r.from = now
	for load, c := range r.requests {
		if taken := c.take(); !taken.empty() {
			s.Requests[load] = taken
		}
	}
	for load, c := range r.streams {
		if taken := c.take(); taken != (StreamSlot{}) {
			s.Streams[load] = taken
		}
	}
	switch {
	case r.send != nil:
		return r.send(s)
	case r.merger != nil:
		return r.writeAll(r.merger.add(0, s))
	}
	return r.write(s, now)
}

func (r *Recorder) writeAll(all []Slot) error {
	for _, s := range all {
		if err := r.write(s, s.Until()); err != nil {
			return err
		}
	}
	return nil
}

// write writes a slot that ended at the time `now`, and queues its events for delivery.
func (r *Recorder) write(s Slot, now time.Time) error {
	if r.follow != nil {
		r.follow(s)
	}
	if len(s.Requests)+len(s.Streams) == 0 {
		return nil
	}
	for load, taken := range s.Streams {
		r.note(result.EventRelist, load, taken.Relists, now)
		r.note(result.EventWatchBreak, load, taken.Breaks, now)
	}
	written := make(map[string]RequestSlot, len(s.Requests))
	for load, taken := range s.Requests {
		taken.Took = nil
		written[load] = taken
	}
	s.Requests = written
	line, err := json.Marshal(s)
	if err != nil {
		return fmt.Errorf("samples: %w", err)
	}
	// Write the line in one call. A sync is not necessary: the data survives if the process is killed.
	if _, err := r.f.Write(append(line, '\n')); err != nil {
		return fmt.Errorf("samples: %w", err)
	}
	return nil
}

// note queues an event for delivery, unless the previous event of the same kind and load was less than `quiet` ago. n
// is the number of such events in the slot. The slot counts them even if no event is delivered.
func (r *Recorder) note(kind result.EventKind, load string, n int64, now time.Time) {
	if n == 0 {
		return
	}
	key := string(kind) + " " + load
	if now.Sub(r.last[key]) >= quiet {
		r.undelivered = append(r.undelivered, result.Event{Time: now.UTC(), Kind: kind, Name: load, Detail: fmt.Sprintf("%d at first", n)})
		select {
		case r.news <- struct{}{}:
		default: // already signaled
		}
	}
	r.last[key] = now
}

func (r *Recorder) deliverEvents() {
	r.mu.Lock()
	events := r.undelivered
	r.undelivered = nil
	r.mu.Unlock()
	for _, e := range events {
		r.event(e)
	}
}
