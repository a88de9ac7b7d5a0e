package load

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// A schedule stops during a pause and then resumes: later arrivals are delayed by the length of the pause.
func TestScheduleStandsStillInPauses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := NewPause()
		start := time.Now()
		go func() {
			time.Sleep(1500 * time.Millisecond)
			p.Begin(time.Now())
			time.Sleep(10 * time.Second)
			p.End(time.Now())
		}()
		for i, want := range []time.Duration{0, time.Second, 12 * time.Second, 13 * time.Second} {
			due, ok := p.Await(t.Context(), start, time.Duration(i)*time.Second)
			if now := time.Since(start); !ok || now != want || due.Sub(start) != want {
				t.Errorf("arrival %d came at %s, due at %s, want %s", i, now, due.Sub(start), want)
			}
		}
		if got := p.State().Elapsed(start, time.Now()); got != 3*time.Second {
			t.Errorf("the schedule is at %s, want 3s", got)
		}
		// A schedule that began during the pause is delayed by the rest of the pause.
		if got := p.State().Lost(start.Add(9 * time.Second)); got != 2500*time.Millisecond {
			t.Errorf("%s, want 2.5s", got)
		}
	})
}

func TestPauseBeginsAndEndsOnce(t *testing.T) {
	p := NewPause()
	now := time.Now()
	if p.End(now) || !p.Begin(now) || p.Begin(now.Add(time.Second)) || !p.State().Paused() {
		t.Error("End ended a pause that had not begun, or Begin began it twice")
	}
	if got := p.State().Elapsed(now.Add(-time.Minute), now.Add(time.Hour)); got != time.Minute {
		t.Errorf("in the pause the schedule is at %s, want 1m0s", got)
	}
	if !p.End(now.Add(time.Hour)) || p.State().Paused() {
		t.Error("End did not end the pause")
	}
	var none *Pause
	if s := none.State(); s.Paused() || s.Lost(now) != 0 || s.Elapsed(now, now.Add(time.Second)) != time.Second {
		t.Error("a nil Pause is paused")
	}
}

// A wait during a pause ends with its context.
func TestEndOfContextEndsAPausedWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := NewPause()
		p.Begin(time.Now())
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if _, ok := p.Await(ctx, time.Now(), 0); ok {
			t.Error("an arrival was due during the pause")
		}
	})
}
