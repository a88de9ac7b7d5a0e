package check

import (
	"bytes"
	"testing"

	"github.com/stormglass/stormglass/loadgen/result"
)

// Histories that an API server may cause.
func TestSound(t *testing.T) {
	for name, h := range map[string]*told{
		"nothing happened": one().final(10, 0).watcher(),
		"one after another": one().write(0, 1, 2, 10, 1, 11).read(1, 3, 4, 11, 1).write(1, 5, 6, 11, 2, 12).
			final(12, 2).watcher(event(11, 1), event(12, 2)),
		"a read during a write sees either":   one().write(0, 1, 9, 10, 1, 11).read(1, 2, 3, 10, 0).read(2, 4, 5, 11, 1).read(1, 6, 7, 11, 1).final(11, 1),
		"of two writes over one version, one": one().write(0, 1, 9, 10, 1, 11).tried(1, 2, 8, 10, 2, Conflict).final(11, 1),
		"a write without a response happened": one().tried(0, 1, 5, 10, 1, Unknown).read(1, 6, 7, 11, 1).final(11, 1).watcher(event(11, 1)),
		"a write without a response happens after its client gave up": one().tried(0, 1, 5, 10, 1, Unknown).read(0, 6, 7, 10, 0).
			read(0, 8, 9, 11, 1).final(11, 1),
		"a write without a response never happened": one().tried(0, 1, 5, 10, 1, Unknown).write(1, 6, 7, 10, 2, 11).final(11, 2).watcher(event(11, 2)),
		"many writes without a response, then a conflict": one().tried(0, 1, 5, 10, 1, Unknown).tried(1, 1, 5, 10, 2, Unknown).
			tried(2, 1, 5, 10, 3, Unknown).tried(3, 20, 21, 10, 4, Conflict),
		"a cached read may be old":                   one().write(0, 1, 2, 10, 1, 11).cached(0, 3, 4, 10, 0).final(11, 1),
		"reads without a response":                   one().op(Operation{Kind: Read, Outcome: Unknown}, 1, 2).final(10, 0),
		"a refused write did not happen":             one().tried(0, 1, 2, 10, 1, Refused).final(10, 0).watcher(),
		"the event comes before the acknowledgement": one().write(0, 1, 60_000, 10, 1, 11).final(11, 1).watcher(event(11, 1)),
		"a bookmark, then newer":                     one().write(0, 1, 2, 10, 1, 14).final(14, 1).watcher(Entry{Kind: Bookmark, Version: 13}, event(14, 1)),
	} {
		t.Run(name, func(t *testing.T) { expect(t, &h.History) })
	}
}

func TestNotLinearizable(t *testing.T) {
	for name, h := range map[string]*told{
		"a read older than a write acknowledged before": one().write(0, 1, 2, 10, 1, 11).read(1, 3, 4, 10, 0).final(11, 1),
		"a read older than another client's":            one().write(0, 1, 90, 10, 1, 11).read(1, 2, 3, 11, 1).read(2, 4, 5, 10, 0).final(11, 1),
		"a read older than a delivered event": one().write(0, 1, 90_000, 10, 1, 11).read(1, 60_000, 60_001, 10, 0).
			final(11, 1).watcher(event(11, 1)),
		"a conflict with the version that there was": one().tried(0, 1, 2, 10, 1, Conflict).final(10, 0),
		"not found, though it was there":             one().tried(0, 1, 2, 10, 1, Absent).final(10, 0),
		"a write over a version of before": one().write(0, 1, 2, 10, 1, 11).write(0, 3, 4, 11, 2, 12).
			tried(1, 5, 6, 11, 3, Unknown).read(2, 7, 8, 13, 3).final(13, 3),
	} {
		t.Run(name, func(t *testing.T) {
			r := Check(&h.History, enough)
			if r.Linearizable != "no" {
				t.Errorf("linearizable: %s", r.Linearizable)
			}
			if len(r.Pictures) != 1 || !bytes.Contains(r.Pictures[0].HTML, []byte("</html>")) {
				t.Error("the report has no picture of the violation")
			}
		})
	}
}

func TestLostWrite(t *testing.T) {
	for name, h := range map[string]*told{
		"undone at the end":       one().write(0, 1, 2, 10, 1, 11).final(10, 0),
		"undone and written over": one().write(0, 1, 2, 10, 1, 11).write(1, 3, 4, 10, 2, 12).final(12, 2),
		"in the middle of a chain": one().write(0, 1, 2, 10, 1, 11).write(0, 3, 4, 11, 2, 12).write(1, 5, 6, 11, 3, 13).
			write(1, 7, 8, 13, 4, 14).final(14, 4),
		"the object is gone": one().write(0, 1, 2, 10, 1, 11).final(0, 0),
	} {
		t.Run(name, func(t *testing.T) {
			r := expect(t, &h.History, result.LostWrite, result.NotLinearizable)
			if v := r.Violations[0]; v.Version != h.Operations[0].Version && v.Version != 12 {
				t.Errorf("the violation of the lost write names version %d", v.Version)
			}
		})
	}
}

// A store that is restored from a backup gives the versions of lost writes to other writes.
func TestVersionsGivenAgain(t *testing.T) {
	h := one().write(0, 1, 2, 10, 1, 11).write(0, 3, 4, 11, 2, 12).write(0, 5, 6, 12, 3, 13).
		read(1, 20, 21, 10, 0).write(1, 22, 23, 10, 4, 12).write(1, 24, 25, 12, 5, 13).write(1, 26, 27, 13, 6, 14).final(14, 6)
	r := Check(&h.History, enough)
	var lost []string
	for _, v := range r.Violations {
		if v.Kind == result.LostWrite {
			lost = append(lost, v.Detail)
		}
	}
	if len(lost) != 3 || len(r.Unjudged) > 0 {
		t.Errorf("want the writes of 1, 2 and 3 lost, got %q, unjudged %q", lost, r.Unjudged)
	}
}

func TestBackwardsRead(t *testing.T) {
	for name, h := range map[string]*told{
		"of what it read":             one().write(0, 1, 2, 10, 1, 11).read(1, 3, 4, 11, 1).read(1, 5, 6, 10, 0).final(11, 1),
		"of what it wrote":            one().write(0, 1, 2, 10, 1, 11).read(0, 5, 6, 10, 0).final(11, 1),
		"of what a cache had told it": one().write(0, 1, 90, 10, 1, 11).cached(1, 3, 4, 11, 1).read(1, 5, 6, 10, 0).final(11, 1),
	} {
		t.Run(name, func(t *testing.T) { expect(t, &h.History, result.BackwardsRead, result.NotLinearizable) })
	}
	r := Check(&one().write(0, 1, 2, 10, 1, 11).cached(0, 3, 4, 10, 0).cached(1, 3, 4, 10, 0).final(11, 1).History, enough)
	if r.CachedOld != 1 {
		t.Errorf("%d cached reads are old, want 1: the other's client knew nothing newer", r.CachedOld)
	}
}

func TestPhantom(t *testing.T) {
	for name, h := range map[string]*told{
		"a value that was not written": one().read(0, 1, 2, 11, 77),
		"a foreign value":              one().read(0, 1, 2, 11, Foreign),
		"a refused write happened":     one().tried(0, 1, 2, 10, 1, Refused).read(0, 3, 4, 11, 1),
		"a conflicting write happened": one().tried(0, 1, 2, 10, 1, Conflict).read(0, 3, 4, 11, 1),
		"a write happened twice":       one().tried(0, 1, 2, 10, 1, Unknown).read(0, 3, 4, 11, 1).read(0, 5, 6, 12, 1),
		"one version of two values":    one().tried(0, 1, 2, 10, 1, Unknown).tried(0, 1, 2, 10, 2, Unknown).read(0, 3, 4, 11, 1).read(0, 5, 6, 11, 2),
		"seen before it was written":   one().read(0, 1, 2, 11, 1).write(1, 3, 4, 10, 1, 11),
		"a deletion":                   one().watcher(Entry{Kind: Deleted, Version: 11}),
		"an event of a foreign object": one().watcher(Entry{Kind: Changed, Register: -1, Version: 11}),
	} {
		t.Run(name, func(t *testing.T) {
			if r := Check(&h.History, enough); len(r.Violations) == 0 || r.Violations[0].Kind != result.Phantom {
				t.Errorf("violations: %+v", r.Violations)
			}
		})
	}
}

func TestUnknownHappened(t *testing.T) {
	h := one().tried(0, 1, 2, 10, 1, Unknown).tried(0, 3, 4, 10, 2, Unknown).write(1, 5, 9, 11, 3, 12).final(12, 3).watcher(event(11, 1), event(12, 3))
	if r := expect(t, &h.History); r.UnknownHappened != 1 {
		t.Errorf("%d writes of unknown outcome happened, want 1", r.UnknownHappened)
	}
}

func TestUnjudged(t *testing.T) {
	h := one().write(0, 1, 2, 10, 1, 11)
	if r := expect(t, &h.History); len(r.Unjudged) != 1 {
		t.Errorf("without a final read, Unjudged = %q", r.Unjudged)
	}
	// A search without time has no verdict.
	h = one()
	for i := range uint64(5000) {
		h.write(0, int(i)*2, int(i)*2+1, 10+i, i+1, 11+i)
	}
	h.final(5010, 5000)
	if r := Check(&h.History, 1); r.Linearizable != "unknown" || len(r.Unjudged) != 1 || len(r.Violations) != 0 {
		t.Errorf("linearizable: %s, unjudged %q", r.Linearizable, r.Unjudged)
	}
}
