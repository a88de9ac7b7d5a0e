package request

import "time"

// The dispatcher's wake-ups are at least so far apart: more, the more arrivals were due at the last one. A wake-up
// costs as much CPU as several requests, so close arrivals go out together; the lag is reported. Up to some 10,000
// arrivals per second it is at most half a millisecond, then a whole one.
const (
	shortestBeat = 500 * time.Microsecond
	beatEach     = 100 * time.Microsecond
	longestBeat  = time.Millisecond
)

type sleep struct {
	timer *time.Timer
	alarm *alarm
	last  time.Duration // when it had to wake last: being late does not slow the beat
}

func newSleep(a *alarm) *sleep { return &sleep{timer: time.NewTimer(time.Hour), alarm: a} }

func (s *sleep) stop() { s.timer.Stop() }

// until waits for a time, or for something to do before it.
func (s *sleep) until(e *engine, t time.Duration) {
	if e.queue.len() > 0 {
		t = min(t, e.queue.head().deadline)
	}
	beat := max(shortestBeat, min(time.Duration(e.round)*beatEach, longestBeat))
	t = max(t, s.last+beat)
	e.round = 0
	// Only a select hears of a freed stream.
	if wait := t - e.now(); wait > 0 && (e.freed != nil || !s.alarm.wait(e.start, t)) {
		s.timer.Reset(wait)
		s.alarm.set(wait)
		select {
		case <-s.timer.C:
		case <-e.woken:
		case <-e.freed:
		}
	}
	now := e.now()
	s.last = max(min(t, now), now-beat)
}
