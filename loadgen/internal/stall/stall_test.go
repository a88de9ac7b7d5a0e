package stall

import (
	"testing"
	"time"
)

const tick = 10 * time.Millisecond

// ticks returns a meter for a test. at returns the time d after the start of the test, and tickAt records that the next
// tick occurred at that time. The first tick is due at 10 ms.
func ticks() (m *Meter, at func(time.Duration) time.Time, tickAt func(time.Duration)) {
	m = &Meter{}
	start := time.Unix(1000, 0)
	at = func(d time.Duration) time.Time { return start.Add(d) }
	due := tick
	tickAt = func(d time.Duration) {
		next := due + tick
		for next <= d {
			next += tick
		}
		m.Ticked(at(due), at(d), at(next))
		due = next
	}
	return m, at, tickAt
}

func TestNoStallWithoutLateTick(t *testing.T) {
	m, at, tickAt := ticks()
	tickAt(tick)
	tickAt(2*tick + 900*time.Microsecond)
	if late, total := m.Late(at(25*time.Millisecond)), m.Total(at(25*time.Millisecond)); late != 0 || total != 0 {
		t.Errorf("late %v, total %v, want none", late, total)
	}
	var none *Meter
	if none.Late(at(0)) != 0 || none.Total(at(0)) != 0 || (&Meter{}).Late(at(0)) != 0 {
		t.Error("a meter without ticks reports a stall")
	}
}

// A stop is known at the first call after it, before the ticker runs.
func TestStopIsKnownBeforeItsTick(t *testing.T) {
	m, at, tickAt := ticks()
	tickAt(tick)
	end := 720 * time.Millisecond // 700 ms after the tick that was due at 20 ms
	if got := m.Late(at(end)); got != 700*time.Millisecond {
		t.Errorf("before the tick: late %v, want 700ms", got)
	}
	if got := m.Total(at(end)); got != 700*time.Millisecond {
		t.Errorf("before the tick: total %v, want 700ms", got)
	}
	tickAt(end)
	if got := m.Late(at(end)); got != 700*time.Millisecond {
		t.Errorf("after the tick: late %v, want 700ms", got)
	}
}

// After a stall, the generator catches up for as long as the stall lasted.
func TestCatchingUp(t *testing.T) {
	m, at, tickAt := ticks()
	tickAt(tick)
	for d := 720 * time.Millisecond; d <= 1500*time.Millisecond; d += tick {
		tickAt(d)
		want := d - 2*tick
		if d >= 1420*time.Millisecond { // stopped from 20 to 720 ms
			want = 0
		}
		if got := m.Late(at(d)); got != want {
			t.Fatalf("at %v: late %v, want %v", d, got, want)
		}
	}
	if got := m.Total(at(1500 * time.Millisecond)); got != 700*time.Millisecond {
		t.Errorf("total %v, want 700ms: catching up is no stall", got)
	}
}

// A short delay does not hide the long one that it follows.
func TestDelayWhileCatchingUp(t *testing.T) {
	m, at, tickAt := ticks()
	tickAt(520 * time.Millisecond) // due at 10 ms, so the generator catches up until 1030 ms
	tickAt(545 * time.Millisecond) // due at 530 ms
	if got := m.Late(at(545 * time.Millisecond)); got != 535*time.Millisecond {
		t.Errorf("late %v, want 535ms", got)
	}
	if got := m.Total(at(545 * time.Millisecond)); got != 525*time.Millisecond {
		t.Errorf("total %v, want 510ms and 15ms", got)
	}
}

func TestNoStallAfterStop(t *testing.T) {
	m, at, tickAt := ticks()
	tickAt(tick)
	m.Stop()
	if got := m.Late(at(time.Hour)); got != 0 {
		t.Errorf("late %v after the last tick, want 0", got)
	}
}

// Data that is read after goroutines waited to run may have waited as long as the goroutines.
func TestQueued(t *testing.T) {
	m, at, tickAt := ticks()
	m.Queued(time.Second, at(0)) // before the first tick nothing is known
	tickAt(tick)
	m.Queued(4*time.Millisecond, at(tick))
	for after, want := range map[time.Duration]time.Duration{0: 4, 3: 7, 4: 0} {
		if got := m.Late(at(tick + after*time.Millisecond)); got != want*time.Millisecond {
			t.Errorf("%d ms later: late %v, want %d ms", after, got, want)
		}
	}
	if got := m.Total(at(tick)); got != 0 {
		t.Errorf("total %v: the generator was run", got)
	}
	tickAt(520 * time.Millisecond)
	m.Queued(4*time.Millisecond, at(520*time.Millisecond))
	if got := m.Late(at(520 * time.Millisecond)); got != 500*time.Millisecond {
		t.Errorf("late %v after a stop of 500ms", got)
	}
}

func TestTotalNeverDecreases(t *testing.T) {
	m, at, tickAt := ticks()
	tickAt(tick)
	asked := m.Total(at(60 * time.Millisecond)) // 40 ms late, and the tick has not come
	tickAt(59 * time.Millisecond)               // the tick is from before that call
	if total := m.Total(at(61 * time.Millisecond)); total < asked {
		t.Errorf("total %v, a millisecond earlier %v", total, asked)
	}
}
