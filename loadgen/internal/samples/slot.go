// Package samples counts the results of each load ten times a second: succeeded and failed requests, the duration of
// the slowest request, watches that broke or had to list again, and deliveries of writes to watches. From these
// samples, package recovery computes how long a fault affected a load.
//
// Each load gets a Requests or a Streams from the Recorder, with which it counts its results. Counting a request costs
// a few atomic operations; a failed request also takes a lock. One goroutine writes a line of pulse.jsonl (a Slot) for
// each interval that has results: about 1 MB per load and hour of a busy run. The interval is Width, or longer if the
// recorder ran late.
package samples

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stormglass/stormglass/internal/atomicmax"
	"github.com/stormglass/stormglass/loadgen/result"
)

// Width is the length of a Slot, unless the recorder ran late.
const Width = 100 * time.Millisecond

// Slot is a line of pulse.jsonl: the results of all loads in an interval. It contains only loads with results. The
// recorder writes no line if no load has results.
type Slot struct {
	Begin    int64                  `json:"t"`                  // start, in Unix milliseconds
	Millis   int64                  `json:"ms"`                 // length in milliseconds
	Requests map[string]RequestSlot `json:"requests,omitempty"` // by load
	Streams  map[string]StreamSlot  `json:"streams,omitempty"`  // by load; simulated nodes count as Nodes
}

// Nodes is the key in Slot.Streams for the watches of simulated nodes. No load can have this name.
const Nodes = "simulated nodes"

// From returns the time at which the slot begins.
func (s Slot) From() time.Time { return time.UnixMilli(s.Begin).UTC() }

// Until returns the time at which the slot ends.
func (s Slot) Until() time.Time { return time.UnixMilli(s.Begin + s.Millis).UTC() }

// RequestSlot counts the requests of one load that ended in a slot.
type RequestSlot struct {
	Succeeded int64            `json:"ok,omitempty"`      // requests with a 2xx response
	Failed    map[string]int64 `json:"failed,omitempty"`  // failed requests, by outcome
	Unsent    int64            `json:"unsent,omitempty"`  // requests that were due but not sent
	Slowest   float64          `json:"slowest,omitempty"` // seconds since the intended start
	// External is the duration of the slowest request without the generator's own delay. It is nil in runs of older
	// versions of loadgen.
	External *float64 `json:"external,omitempty"`
	// Took contains the number of requests by duration. A Window needs it. Recorders send it to each other, but do not
	// write it to pulse.jsonl.
	Took []Bucket `json:"took,omitempty"`
}

// SlowestExternal returns External, the duration of the slowest request without the generator's own delay, or Slowest
// if External is nil.
func (s RequestSlot) SlowestExternal() float64 {
	if s.External == nil {
		return s.Slowest
	}
	return *s.External
}

// Failures returns the number of failed requests.
func (s RequestSlot) Failures() int64 {
	var n int64
	for _, f := range s.Failed {
		n += f
	}
	return n
}

func (s RequestSlot) empty() bool { return s.Succeeded == 0 && len(s.Failed) == 0 && s.Unsent == 0 }

// StreamSlot counts the events of one load's watches in a slot.
type StreamSlot struct {
	Breaks    int64 `json:"breaks,omitempty"`    // watches that ended for a reason other than the server's timeout
	Relists   int64 `json:"relists,omitempty"`   // watches that had to list again
	Delivered int64 `json:"delivered,omitempty"` // first deliveries of acknowledged writes, counted per watch
}

// Read reads the slots of the run in dir in chronological order. If the file does not exist, it returns no slots. It
// skips an incomplete last line, which a killed run may leave. Every error is a *result.Damaged.
func Read(dir string) ([]Slot, error) {
	slots, err := result.ReadLines[Slot](dir, result.PulseFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	for i := range slots {
		if i > 0 && slots[i].Begin < slots[i-1].Begin {
			return nil, &result.Damaged{File: result.PulseFile, Err: fmt.Errorf("line %d: the slot begins before the slot in the previous line", i+1)}
		}
	}
	return slots, err
}

// Check returns an error if a recorder cannot have created the slot.
func (s Slot) Check() error {
	const longest = 1 << 40 // in milliseconds; 35 years
	if s.Begin <= 0 || s.Millis <= 0 || s.Millis > longest || s.Begin > 4*longest {
		return errors.New("invalid slot: its begin or its length is out of range")
	}
	for load, r := range s.Requests {
		counts := []int64{r.Succeeded, r.Unsent}
		for _, n := range r.Failed {
			counts = append(counts, n)
		}
		for _, b := range r.Took {
			if b.At < 0 || b.At >= buckets {
				return fmt.Errorf("requests of %s: the index of a bucket of durations is out of range", load)
			}
			counts = append(counts, b.N)
		}
		if !countable(counts...) || r.Slowest < 0 {
			return fmt.Errorf("requests of %s: a count is negative or too large", load)
		}
	}
	for load, r := range s.Streams {
		if !countable(r.Breaks, r.Relists, r.Delivered) {
			return fmt.Errorf("watches of %s: a count is negative or too large", load)
		}
	}
	return nil
}

func countable(counts ...int64) bool {
	const most = 1e12 // limit of each count in a slot; sums of such counts do not overflow
	return !slices.ContainsFunc(counts, func(n int64) bool { return n < 0 || n > most })
}

// Requests counts the requests of one load. Its methods are safe for concurrent use and do nothing on a nil Requests.
type Requests struct {
	succeeded, unsent atomic.Int64
	slowest, external atomic.Int64 // in nanoseconds
	spread            *histogram   // requests by duration; nil unless another recorder or Follow needs them

	mu     sync.Mutex
	failed map[string]int64
}

// Succeeded counts a request with a 2xx response. took is the time since the intended start of the request. own is the
// delay within took that the generator itself may have caused.
func (r *Requests) Succeeded(took, own time.Duration) {
	if r != nil {
		r.succeeded.Add(1)
		r.took(took, own)
		r.spread.add(took - own)
	}
}

// Failed counts a failed request by its outcome, a key of result.Requests.Outcomes. For took and own see Succeeded.
func (r *Requests) Failed(outcome string, took, own time.Duration) {
	if r == nil {
		return
	}
	r.mu.Lock()
	if r.failed == nil {
		r.failed = map[string]int64{}
	}
	r.failed[outcome]++
	r.mu.Unlock()
	r.took(took, own)
	if outcome != Canceled {
		r.spread.add(took - own)
	}
}

func (r *Requests) took(took, own time.Duration) {
	atomicmax.Raise(&r.slowest, int64(took))
	atomicmax.Raise(&r.external, int64(took-own))
}

// Unsent counts a request that was due but not sent, for example because too many requests were in flight.
func (r *Requests) Unsent() {
	if r != nil {
		r.unsent.Add(1)
	}
}

// take returns the results since the last call. If a request ends during the call, this slot may contain its count, and
// the next slot its duration.
func (r *Requests) take() RequestSlot {
	s := RequestSlot{Succeeded: r.succeeded.Swap(0), Unsent: r.unsent.Swap(0), Slowest: time.Duration(r.slowest.Swap(0)).Seconds()}
	s.External = new(time.Duration(r.external.Swap(0)).Seconds())
	r.mu.Lock()
	s.Failed, r.failed = r.failed, nil
	r.mu.Unlock()
	s.Took = r.spread.take()
	return s
}

// Streams counts the events of watches. Its methods are safe for concurrent use and do nothing on a nil Streams.
type Streams struct{ breaks, relists, delivered atomic.Int64 }

// Broke counts a watch that ended for any reason other than the server's timeout.
func (s *Streams) Broke() {
	if s != nil {
		s.breaks.Add(1)
	}
}

// Relisted counts a watch that had to list again.
func (s *Streams) Relisted() {
	if s != nil {
		s.relists.Add(1)
	}
}

// Delivered counts n deliveries of acknowledged writes. Only the first delivery of a write to a watch counts.
func (s *Streams) Delivered(n int64) {
	if s != nil {
		s.delivered.Add(n)
	}
}

func (s *Streams) take() StreamSlot {
	return StreamSlot{Breaks: s.breaks.Swap(0), Relists: s.relists.Swap(0), Delivered: s.delivered.Swap(0)}
}
