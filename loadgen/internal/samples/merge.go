package samples

import (
	"maps"
	"slices"
	"time"
)

// merger adds up the slots (results of an interval) of several recorders. All slots begin and end at multiples of
// Width. Slots of different recorders may have different lengths. A merged slot ends when slots of all recorders end at
// the same time.
type merger struct {
	sources []source
	from    int64 // Unix milliseconds up to which slots have been merged; 0 at the start
}

type source struct {
	slots []Slot
	over  bool // whether the merger waits for no further slots of this recorder
}

func newMerger(n int) *merger { return &merger{sources: make([]source, n)} }

// add adds a slot of the recorder with index `of`, and returns the merged slots that this slot completes.
func (m *merger) add(of int, s Slot) []Slot {
	if end := s.Begin + s.Millis; end <= m.from {
		return nil // too late: the merger has already merged the slots of this time
	}
	m.sources[of].slots = append(m.sources[of].slots, s)
	return m.whole()
}

// end stops waiting for the slots of the recorder with index `of`, and returns the merged slots that are then complete.
func (m *merger) end(of int) []Slot {
	m.sources[of].over = true
	return m.whole()
}

func (m *merger) whole() (all []Slot) {
	for {
		until, ok := m.next()
		if !ok {
			return all
		}
		all = append(all, m.take(until))
	}
}

// next returns the end of the next merged slot. ok is false if that slot is not complete yet.
func (m *merger) next() (until int64, ok bool) {
	for _, s := range m.sources {
		if len(s.slots) == 0 {
			if !s.over {
				return 0, false
			}
			continue
		}
		if end := s.slots[0].Begin + s.slots[0].Millis; until == 0 || end < until {
			until = end
		}
	}
	if until == 0 {
		return 0, false
	}
	// Extend the merged slot until no recorder has a slot that begins before its end and ends after it.
	for again := true; again; {
		again = false
		for _, s := range m.sources {
			reached := int64(0)
			for _, slot := range s.slots {
				if slot.Begin >= until {
					reached = until
					break
				}
				if reached = slot.Begin + slot.Millis; reached > until {
					until, again = reached, true
				}
			}
			if reached < until && !s.over {
				return 0, false
			}
		}
	}
	return until, true
}

// take removes the slots that begin before until, and returns their sum.
func (m *merger) take(until int64) Slot {
	sum := Slot{Requests: map[string]RequestSlot{}, Streams: map[string]StreamSlot{}}
	for i := range m.sources {
		s := &m.sources[i]
		for len(s.slots) > 0 && s.slots[0].Begin < until {
			slot := s.slots[0]
			s.slots = s.slots[1:]
			if sum.Begin == 0 || slot.Begin < sum.Begin {
				sum.Begin = slot.Begin
			}
			for load, r := range slot.Requests {
				sum.Requests[load] = sum.Requests[load].plus(r)
			}
			for load, w := range slot.Streams {
				sum.Streams[load] = sum.Streams[load].plus(w)
			}
		}
	}
	sum.Begin = max(sum.Begin, m.from)
	sum.Millis = until - sum.Begin
	m.from = until
	return sum
}

func (s RequestSlot) plus(o RequestSlot) RequestSlot {
	sum := RequestSlot{Succeeded: s.Succeeded + o.Succeeded, Unsent: s.Unsent + o.Unsent, Slowest: max(s.Slowest, o.Slowest)}
	external := max(s.SlowestExternal(), o.SlowestExternal())
	sum.External = &external
	sum.Took = slices.Concat(s.Took, o.Took)
	if len(s.Failed)+len(o.Failed) > 0 {
		sum.Failed = maps.Clone(s.Failed)
		if sum.Failed == nil {
			sum.Failed = map[string]int64{}
		}
		for outcome, n := range o.Failed {
			sum.Failed[outcome] += n
		}
	}
	return sum
}

func (s StreamSlot) plus(o StreamSlot) StreamSlot {
	return StreamSlot{Breaks: s.Breaks + o.Breaks, Relists: s.Relists + o.Relists, Delivered: s.Delivered + o.Delivered}
}

// boundary returns the latest multiple of Width that is not after now.
func boundary(now time.Time) time.Time { return now.Round(0).Truncate(Width) }
