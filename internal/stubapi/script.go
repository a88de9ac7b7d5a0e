package stubapi

// Spoil is a failure of one event on its way to one watch.
type Spoil uint8

// The ways an event is spoilt.
const (
	Keep   Spoil = iota
	Drop         // it is not sent
	Double       // it is sent twice
	Swap         // it is sent after the one that follows it
	Gone         // the watch ends before it with ERROR 410
	End          // the watch ends before it, in order
	Abort        // the stream is reset before it
	Garble       // bytes that are no event are sent in its place
)

// Script returns the failure of event n (from 0) of watch k. Watches are numbered
// in the order of opening, from 0; a resumed watch has a new number. It is a pure
// function.
type Script func(k, n int64) Spoil

// Spoils makes a script out of a list.
func Spoils(list map[int64]map[int64]Spoil) Script {
	return func(k, n int64) Spoil { return list[k][n] }
}

// piece is one message sent to a watch, for an event or at its end.
type piece struct {
	event *event // nil: an end, or garbage
	spoil Spoil
}

// eventScript applies a script to the events of one watch. It has no clock and no
// I/O.
type eventScript struct {
	script Script
	watch  int64
	n      int64
	held   *event // swapped with the next
	ended  bool
}

// next returns the messages for an event.
func (t *eventScript) next(e *event) []piece {
	if t.ended {
		return nil
	}
	spoil := Keep
	if t.script != nil && e.kind != bookmark {
		spoil = t.script(t.watch, t.n)
		t.n++
	}
	var out []piece
	switch spoil {
	case Drop:
	case Double:
		out = append(out, piece{event: e}, piece{event: e})
	case Swap:
		if t.held == nil { // one at a time
			t.held = e
			return nil
		}
		out = append(out, piece{event: e})
	case Gone, End, Abort:
		t.ended = true
		return append(out, piece{spoil: spoil})
	case Garble:
		out = append(out, piece{spoil: Garble})
	default:
		out = append(out, piece{event: e})
	}
	if t.held != nil && len(out) > 0 {
		out = append(out, piece{event: t.held})
		t.held = nil
	}
	return out
}
