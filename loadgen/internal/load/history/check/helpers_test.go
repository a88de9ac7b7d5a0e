package check

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stormglass/stormglass/loadgen/result"
)

// enough is a time limit that no search of these tests exceeds, even on a busy machine.
const enough = 10 * time.Minute

// told builds a history in a form that is easy to read in a test. Times are in milliseconds.
type told struct{ History }

// one returns a history of one register that begins at version 10 with value 0.
func one() *told {
	return &told{History{Registers: []Register{{Name: "r", Version: 10}}}}
}

func ms(n int) time.Duration { return time.Duration(n) * time.Millisecond }

func (h *told) op(o Operation, from, to int) *told {
	o.Call, o.Return = ms(from), ms(to)
	h.Operations = append(h.Operations, o)
	return h
}

// write adds a write of a value over a version, acknowledged as another version.
func (h *told) write(client, from, to int, expected, value, version uint64) *told {
	return h.op(Operation{Client: client, Kind: Write, Expected: expected, Value: value, Version: version}, from, to)
}

// tried adds a write that was not acknowledged.
func (h *told) tried(client, from, to int, expected, value uint64, o Outcome) *told {
	return h.op(Operation{Client: client, Kind: Write, Expected: expected, Value: value, Outcome: o}, from, to)
}

func (h *told) read(client, from, to int, version, value uint64) *told {
	return h.op(Operation{Client: client, Kind: Read, Version: version, Value: value}, from, to)
}

func (h *told) cached(client, from, to int, version, value uint64) *told {
	return h.op(Operation{Client: client, Kind: CachedRead, Version: version, Value: value}, from, to)
}

// final adds a read after all other operations.
func (h *told) final(version, value uint64) *told {
	return h.op(Operation{Client: 9, Kind: Read, Version: version, Value: value, Final: true}, 100_000, 100_001)
}

// watcher adds a watcher that starts at version 10, receives the given states
// (version and value), and is connected at the end.
func (h *told) watcher(entries ...Entry) *told {
	for i := range entries {
		entries[i].At = ms(50_000 + i)
	}
	h.Watchers = append(h.Watchers, Watcher{Start: 10, Entries: entries, Live: true})
	return h
}

func event(version, value uint64) Entry {
	return Entry{Kind: Changed, Version: version, Value: value}
}

func kinds(all []result.Violation) []string {
	var some []string
	for _, v := range all {
		some = append(some, v.Kind)
	}
	slices.Sort(some)
	return slices.Compact(some)
}

// expect checks that exactly these kinds of violations are found.
func expect(t *testing.T, h *History, want ...string) Report {
	t.Helper()
	r := Check(h, enough)
	slices.Sort(want)
	if got := kinds(r.Violations); !slices.Equal(got, want) {
		t.Errorf("violations of kinds [%s], want [%s]", strings.Join(got, " "), strings.Join(want, " "))
		for _, v := range r.Violations {
			t.Logf("%s: %s", v.Kind, v.Detail)
		}
	}
	if linear := r.Linearizable == "yes"; linear == slices.Contains(want, result.NotLinearizable) {
		t.Errorf("linearizable: %s", r.Linearizable)
	}
	return r
}
