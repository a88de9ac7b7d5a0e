package wakeup

import (
	"testing"
	"time"
)

// A ring ends the current wait, or the next wait if none is active.
func TestRingIsNeverLost(t *testing.T) {
	a := New()
	defer a.Close()
	rounds, rang := make(chan struct{}), make(chan struct{}, 1)
	go func() {
		for range rounds {
			a.Ring()
			rang <- struct{}{}
		}
	}()
	defer close(rounds)
	for i := range 5000 {
		rounds <- struct{}{} // it rings while we fall asleep,
		before := i%2 == 0
		if before { // or has done so
			<-rang
		}
		start := time.Now()
		if !a.Wait(start, time.Minute) {
			t.Fatal("there is no wakeup")
		}
		if time.Since(start) >= time.Minute {
			t.Fatalf("ring %d was lost", i)
		}
		if !before {
			<-rang
		}
	}
}

// Without a ring, the wait is over when it should be, and not before, though a
// ring was meant for an earlier one.
func TestWakeupIsNotEarly(t *testing.T) {
	a := New()
	defer a.Close()
	a.Ring()
	a.Wait(time.Now(), time.Minute)
	for _, wait := range []time.Duration{-time.Second, 0, time.Nanosecond, time.Microsecond, time.Millisecond, 20 * time.Millisecond} {
		start := time.Now()
		if !a.Wait(start, wait) {
			t.Fatal("there is no wakeup")
		}
		if got := time.Since(start); got < wait {
			t.Errorf("%v were over after %v", wait, got)
		}
	}
}

// The runtime's timer and the wakeup may be set for the same wait: what is left
// of the one does not end the next.
func TestWakeupSetBeside(t *testing.T) {
	a := New()
	defer a.Close()
	a.Set(time.Nanosecond)
	start := time.Now()
	if a.Wait(start, 5*time.Millisecond); time.Since(start) < 5*time.Millisecond {
		t.Error("Wait ended early")
	}
}
