package watch

import (
	"sync"
	"testing"
	"time"
)

// account returns a ledger whose watches were established from version 10, and the statistics of its writes.
func account(watches int, size int64) (*ledger, *deliveries) {
	r := newRoster(watches)
	for i := range watches {
		r.join(i, 10)
	}
	return newLedger("run", r, size), newDeliveries()
}

const noon = 12 * time.Hour

func begin(t *testing.T, l *ledger, seq int64, d *deliveries) {
	t.Helper()
	if _, ok := l.begin(seq, d); !ok {
		t.Fatalf("the ledger has no slot for write %d", seq)
	}
}

// bring makes a delivery and records it as a connection does.
func bring(l *ledger, watch int, seq int64, rv uint64, at time.Duration, older bool) delivery {
	d := l.deliver(seq, receipt{watch: watch, rv: rv, at: at, older: older})
	if d.first {
		d.stats.delivery.Record(d.after)
	}
	return d
}

func TestDeliveryIsTimedFromTheAcknowledgement(t *testing.T) {
	l, d := account(70, 8) // more watches than bits in a word
	begin(t, l, 0, d)
	bring(l, 69, 0, 11, noon, false) // before the acknowledgement
	if early, _ := l.ack(0, 11, noon, 0); early != 1 {
		t.Errorf("%d deliveries before the acknowledgement, want 1", early)
	}
	if got := bring(l, 3, 0, 11, noon+time.Second, false); !got.first || got.after != time.Second {
		t.Errorf("delivery a second after the acknowledgement: %+v", got)
	}
	if expected, delivered := l.count(nil, nil); expected != 70 || delivered != 2 {
		t.Errorf("%d of %d delivered, want 2 of 70", delivered, expected)
	}
	if lat := d.delivery.Latency(); lat.Count != 2 || lat.P50 != 0 || lat.Max != 1 || d.beforeAck.Load() != 1 {
		t.Errorf("latency %+v, %d before the acknowledgement", lat, d.beforeAck.Load())
	}
	if slowest, _ := d.perWatch(); slowest.Latency().Count != 2 || slowest.Latency().Max != 1 {
		t.Errorf("slowest per watch: %+v", slowest.Latency())
	}
}

// An acknowledgement that was seen after a stall may have arrived before it. Deliveries are timed from the earliest possible
// arrival, so that a stall makes no delivery look faster.
func TestAcknowledgementSeenInAStall(t *testing.T) {
	l, d := account(2, 8)
	begin(t, l, 0, d)
	bring(l, 0, 0, 11, noon, false)
	l.ack(0, 11, noon, 300*time.Millisecond)
	got := bring(l, 1, 0, 11, noon+100*time.Millisecond, false)
	if got.after != 400*time.Millisecond || got.ackLate != 300*time.Millisecond {
		t.Errorf("delivered after %v, up to %v of it in a stall; want 400ms and 300ms", got.after, got.ackLate)
	}
	if all, external := d.delivery.Latency(), d.external.Latency(); all.Mean != 0.35 || external.Max != 0 {
		t.Errorf("both took %v s on average, the delivery before the acknowledgement %v s without the stall; want 0.35 and 0", all.Mean, external.Max)
	}
}

// A watch that was established from the write's version or later has the write in its list. A watch that was never established
// need not deliver it.
func TestOnlyWatchesFromAnOlderVersionOwe(t *testing.T) {
	r := newRoster(4)
	l, d := newLedger("run", r, 8), newDeliveries()
	r.join(0, 49)
	r.join(1, 50)
	r.join(2, 51)
	begin(t, l, 0, d)
	l.ack(0, 50, noon, 0)
	if expected, _ := l.count(d, nil); expected != 1 {
		t.Errorf("%d watches owe the write of version 50, want only that from 49", expected)
	}
	bring(l, 0, 0, 50, noon, false)
	if expected, delivered := l.count(d, nil); expected != 1 || delivered != 1 {
		t.Errorf("%d of %d delivered, want all", delivered, expected)
	}
	r.join(3, 20) // established late, from a version before the write
	if expected, delivered := l.count(d, nil); expected != 2 || delivered != 1 {
		t.Errorf("%d of %d delivered, want 1 of 2", delivered, expected)
	}
}

// Another client's change to the object leaves the last stamp in place.
func TestForeignChangeIsNotADuplicate(t *testing.T) {
	l, d := account(1, 8)
	begin(t, l, 0, d)
	l.ack(0, 11, noon, 0)
	bring(l, 0, 0, 11, noon, false)
	if got := bring(l, 0, 0, 12, noon, false); !got.foreign || d.duplicated.Load() != 0 {
		t.Errorf("%+v, %d duplicates; want a foreign event", got, d.duplicated.Load())
	}
	bring(l, 0, 0, 11, noon, true)
	if n := d.duplicated.Load(); n != 1 || d.reordered.Load() != 0 {
		t.Errorf("%d duplicates, want one, of the same version", n)
	}
}

// Early deliveries may belong to another client's write with our stamp.
func TestAcknowledgementDecidesWhatWasDelivered(t *testing.T) {
	l, d := account(2, 8)
	begin(t, l, 0, d)
	bring(l, 0, 0, 15, noon, false)
	if early, _ := l.ack(0, 11, noon, 0); early != 0 {
		t.Errorf("got %d early deliveries of another client's write", early)
	}
	if got := bring(l, 0, 0, 11, noon, true); !got.first {
		t.Errorf("the write itself: %+v", got)
	}
}

func TestOldWriteIsGivenUpForItsSlot(t *testing.T) {
	l, d := account(3, 2)
	begin(t, l, 0, d)
	l.ack(0, 11, noon, 0)
	bring(l, 0, 0, 11, noon, false)
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
	if _, lost := d.perWatch(); lost[0] != 0 || lost[1] != 1 || lost[2] != 1 {
		t.Errorf("lost by watch: %v", lost)
	}
	bring(l, 1, 0, 11, noon, true)
	if d.late.Load() != 1 || d.duplicated.Load()+d.reordered.Load() != 0 {
		t.Errorf("late %d, duplicated %d, reordered %d; want 1, 0, 0", d.late.Load(), d.duplicated.Load(), d.reordered.Load())
	}
	if again := l.giveUp(); again != 0 {
		t.Errorf("the ledger gave up %d deliveries again", again)
	}
}

// Slow watches must deliver, but are left out of the latencies.
func TestSlowWatchesAreNotTimed(t *testing.T) {
	l, d := account(2, 8)
	begin(t, l, 0, d)
	l.deliver(0, receipt{watch: 0, slow: true, rv: 11, at: noon})
	early, slow := l.ack(0, 11, noon, 0)
	if expected, delivered := l.count(nil, nil); early != 0 || slow != 1 || expected != 2 || delivered != 1 {
		t.Errorf("early %d and %d, %d of %d delivered", early, slow, delivered, expected)
	}
	if d.beforeAck.Load() != 0 || d.delivery.Latency().Count != 0 {
		t.Errorf("%d before the acknowledgement, %d timed", d.beforeAck.Load(), d.delivery.Latency().Count)
	}
}

// However deliveries, acknowledgements and reuse of the ring interleave, each
// delivery is counted once, as delivered or as late.
func TestEachDeliveryIsCountedOnce(t *testing.T) {
	const watches, writes = 130, 3000
	l, d := account(watches, 16)
	acked := make(chan int64, 1)
	var readers sync.WaitGroup
	turns := make([]chan int64, 4)
	for i := range turns {
		turns[i] = make(chan int64, 40) // so long that the readers fall behind the ring
		readers.Go(func() {
			for seq := range turns[i] {
				for watch := i; watch < watches; watch += len(turns) {
					bring(l, watch, seq, uint64(11+seq), noon, false)
				}
			}
		})
	}
	go func() {
		for seq := range acked {
			l.ack(seq, uint64(11+seq), noon, 0)
		}
		close(turns[0])
		close(turns[1])
		close(turns[2])
		close(turns[3])
	}()
	for seq := range int64(writes) {
		for {
			if _, ok := l.begin(seq, d); ok {
				break
			}
		}
		for _, c := range turns {
			c <- seq
		}
		acked <- seq
	}
	close(acked)
	readers.Wait()
	expected, delivered := l.count(nil, nil)
	expected, delivered = expected+d.expected.Load(), delivered+d.delivered.Load()
	if expected != watches*writes || delivered+d.late.Load() != expected || d.duplicated.Load() != 0 {
		t.Errorf("%d expected, %d delivered, %d late, %d duplicated; want %d = delivered + late", expected, delivered, d.late.Load(), d.duplicated.Load(), watches*writes)
	}
	if got := d.delivery.Latency().Count; got != delivered {
		t.Errorf("%d deliveries timed, want %d", got, delivered)
	}
}

func TestStamps(t *testing.T) {
	l := newLedger("flood-x1", newRoster(0), 1)
	for _, seq := range []int64{0, 7, 123456789012} {
		stamp := l.stamp(nil, seq)
		id, got, ok := parseStamp(stamp)
		if !ok || string(id) != l.id || got != seq {
			t.Errorf("stamp %q reads as %q, %d, %v", stamp, id, got, ok)
		}
	}
	for _, foreign := range []string{"", ":", "a", "a:", "a:-1", "a:1x", "a:99999999999999999999"} {
		if _, _, ok := parseStamp([]byte(foreign)); ok {
			t.Errorf("the scanner accepts %q as a stamp", foreign)
		}
	}
}
