package traffic

import (
	"context"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stormglass/stormglass/loadgen/latency"
)

// account is a ledger with watches that are established from version 10.
func account(watches int, size int64) (*ledger, *deliveries) {
	r := &roster{from: make([]atomic.Uint64, watches)}
	for i := range watches {
		r.join(i, 10)
	}
	return newLedger("run", r, size), &deliveries{delivery: latency.New(time.Minute)}
}

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

func begin(t *testing.T, l *ledger, seq int64, d *deliveries) {
	t.Helper()
	if _, ok := l.begin(seq, d); !ok {
		t.Fatalf("no slot for write %d", seq)
	}
}

func TestDeliveryIsTimedFromTheAcknowledgement(t *testing.T) {
	l, d := account(70, 8) // more watches than bits in a word
	begin(t, l, 0, d)
	l.deliver(69, 0, 11, noon, false) // before the acknowledgement
	if early := l.ack(0, 11, noon); early != 1 {
		t.Errorf("%d deliveries before the acknowledgement, want 1", early)
	}
	if got := l.deliver(3, 0, 11, noon.Add(time.Second), false); !got.first || got.after != time.Second {
		t.Errorf("delivery a second after the acknowledgement: %+v", got)
	}
	if expected, delivered := l.count(nil); expected != 70 || delivered != 2 {
		t.Errorf("%d of %d delivered, want 2 of 70", delivered, expected)
	}
	if lat := d.delivery.Latency(); lat.Count != 2 || lat.P50 != 0 || lat.Max != 1 || d.beforeAck.Load() != 1 {
		t.Errorf("latency %+v, %d before the acknowledgement", lat, d.beforeAck.Load())
	}
}

// Who was established from the write's version or later has it in its list;
// who was never established owes nothing.
func TestOnlyWatchesFromAnOlderVersionOwe(t *testing.T) {
	r := &roster{from: make([]atomic.Uint64, 4)}
	l, d := newLedger("run", r, 8), &deliveries{delivery: latency.New(time.Minute)}
	r.join(0, 49)
	r.join(1, 50)
	r.join(2, 51)
	begin(t, l, 0, d)
	l.ack(0, 50, noon)
	if expected, _ := l.count(d); expected != 1 {
		t.Errorf("%d watches owe the write of version 50, want only that from 49", expected)
	}
	r.join(3, 20) // established late, from a version before the write
	if expected, _ := l.count(d); expected != 2 {
		t.Errorf("%d watches owe it now, want 2", expected)
	}
}

// Somebody else's change to the object carries our last stamp along.
func TestAnotherWritersChangeIsNoDuplicate(t *testing.T) {
	l, d := account(1, 8)
	begin(t, l, 0, d)
	l.ack(0, 11, noon)
	l.deliver(0, 0, 11, noon, false)
	l.deliver(0, 0, 12, noon, false)
	if n := d.duplicated.Load(); n != 0 {
		t.Errorf("%d duplicates, want none", n)
	}
	l.deliver(0, 0, 11, noon, true)
	if n := d.duplicated.Load(); n != 1 {
		t.Errorf("%d duplicates, want the one of the same version", n)
	}
}

func TestAnOldWriteIsGivenUpWhenItsSlotIsNeeded(t *testing.T) {
	l, d := account(3, 2)
	begin(t, l, 0, d)
	l.ack(0, 11, noon)
	l.deliver(0, 0, 11, noon, false)
	begin(t, l, 1, d)
	if _, ok := l.begin(3, d); ok {
		t.Error("a write in flight lost its slot")
	}
	given, ok := l.begin(2, d)
	if !ok || given != 2 {
		t.Errorf("%d deliveries given up, want 2", given)
	}
	if e, del := d.expected.Load(), d.delivered.Load(); e != 3 || del != 1 {
		t.Errorf("%d of %d delivered, want 1 of 3", del, e)
	}
	l.deliver(1, 0, 11, noon, true)
	if d.late.Load() != 1 || d.duplicated.Load()+d.reordered.Load() != 0 {
		t.Errorf("late %d, duplicated %d, reordered %d; want 1, 0, 0", d.late.Load(), d.duplicated.Load(), d.reordered.Load())
	}
	if again := l.giveUp(); again != 0 {
		t.Errorf("%d given up again", again)
	}
}

func TestStamps(t *testing.T) {
	l := newLedger("flood-x1", &roster{}, 1)
	for _, seq := range []int64{0, 7, 123456789012} {
		id, got, ok := parseStamp([]byte(l.stamp(seq)))
		if !ok || string(id) != l.id || got != seq {
			t.Errorf("stamp %q reads as %q, %d, %v", l.stamp(seq), id, got, ok)
		}
	}
	for _, foreign := range []string{"", ":", "a", "a:", "a:-1", "a:1x", "a:99999999999999999999"} {
		if _, _, ok := parseStamp([]byte(foreign)); ok {
			t.Errorf("%q is taken for a stamp", foreign)
		}
	}
}

// Not parallel: it counts goroutines.
func TestNothingIsLeftRunning(t *testing.T) {
	before := runtime.NumGoroutine()
	s := newStub(t, nil)
	w, c, stopWatches, stopChanges := startFlood(t, s, s.target())
	await(t, "writes", func() bool { return s.count(&s.patches) >= testWrites })
	stopChanges()
	if _, err := w.Drain(context.Background(), 3*time.Second); err != nil {
		t.Fatal(err)
	}
	stopWatches()
	s.CloseClientConnections()
	s.Close()
	await(t, "all goroutines to end", func() bool { return runtime.NumGoroutine() <= before })
	if c.Results()["storm"].Sent == 0 {
		t.Error("nothing was sent")
	}
}
