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
		rounds <- struct{}{} // the goroutine rings while Wait begins,
		before := i%2 == 0
		if before { // or has already rung
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

// A ring that ended an earlier wait does not end later waits early.
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

// A timer that Set has started does not end a later Wait early.
func TestWakeupSetBeside(t *testing.T) {
	a := New()
	defer a.Close()
	a.Set(time.Nanosecond)
	start := time.Now()
	if a.Wait(start, 5*time.Millisecond); time.Since(start) < 5*time.Millisecond {
		t.Error("Wait ended early")
	}
}
