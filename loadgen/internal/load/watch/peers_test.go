package watch

import (
	"sync/atomic"
	"testing"
	"time"
)

// peers returns the ledger of another worker's writes.
func peers(watches int, size int64) (*ledger, *deliveries) {
	l, d := account(watches, size)
	l.present, l.lost = func() *deliveries { return d }, &atomic.Int64{}
	return l, d
}

// Deliveries of another worker's write are timed from its acknowledgement, whether they arrive before or after its notice.
// Their latency includes the uncertainty of the clocks.
func TestDeliveryOfAnotherWorkersWrite(t *testing.T) {
	const unsure = time.Millisecond
	l, d := peers(4, 8)
	bring(l, 0, 0, 11, noon+20*time.Millisecond, false)
	bring(l, 1, 0, 11, noon-2*time.Millisecond, false) // before the acknowledgement, beyond doubt
	early, _ := l.learn(0, 11, noon, 0, unsure)
	if len(early) != 2 || d.beforeAck.Load() != 1 {
		t.Errorf("%d deliveries before the notice, %d before the acknowledgement; want 2, 1", len(early), d.beforeAck.Load())
	}
	if got := bring(l, 2, 0, 11, noon+40*time.Millisecond, false); !got.first || got.after != 41*time.Millisecond {
		t.Errorf("after the notice: %+v", got)
	}
	if expected, delivered := l.count(nil, nil); expected != 4 || delivered != 3 {
		t.Errorf("%d of %d delivered, want 3 of 4", delivered, expected)
	}
	if lat := d.delivery.Latency(); lat.Count != 3 || lat.Max != 0.041 {
		t.Errorf("latency %+v", lat)
	}
	if slowest, _ := d.perWatch(); slowest.Latency().Count != 3 {
		t.Errorf("slowest per watch: %+v", slowest.Latency())
	}
	if got := bring(l, 2, 0, 11, noon+50*time.Millisecond, false); !got.duplicated {
		t.Errorf("a second delivery: %+v", got)
	}
}

// A notice before any delivery records the write: deliveries that never arrive are lost.
func TestNoticeAloneIsOwed(t *testing.T) {
	l, _ := peers(3, 8)
	l.learn(5, 11, noon, 0, 0)
	if expected, delivered := l.count(nil, nil); expected != 3 || delivered != 0 {
		t.Errorf("%d of %d delivered, want 0 of 3", delivered, expected)
	}
	if l.awaited() != 3 || l.giveUp() != 3 || l.awaited() != 0 {
		t.Error("the ledger does not give up undelivered writes")
	}
}

// No watch must deliver a write without a notice. A newer write may take its slot.
func TestWriteWithoutNoticeIsNotOwed(t *testing.T) {
	l, d := peers(3, 4)
	l.step = 2 // the writes of one of two workers
	bring(l, 0, 1, 11, noon, false)
	bring(l, 0, 9, 15, noon, false) // the same slot
	if expected, _ := l.count(nil, nil); expected != 0 {
		t.Errorf("%d deliveries expected of writes without a notice", expected)
	}
	if early, _ := l.learn(1, 11, noon, 0, 0); early != nil {
		t.Errorf("a notice after its slot was taken: %v", early)
	}
	l.learn(9, 15, noon, 0, 0)
	if expected, delivered := l.count(d, nil); expected != 3 || delivered != 1 {
		t.Errorf("%d of %d delivered, want 1 of 3", delivered, expected)
	}
}

// A repeated notice of the same version counts once.
func TestNoticeTwice(t *testing.T) {
	l, d := peers(1, 4)
	bring(l, 0, 0, 11, noon, false)
	l.learn(0, 11, noon, 0, 0)
	if early, _ := l.learn(0, 11, noon, 0, 0); early != nil || d.delivery.Latency().Count != 1 {
		t.Errorf("the second notice of a write has an effect: %v, %+v", early, d.delivery.Latency())
	}
}
