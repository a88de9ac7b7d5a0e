package request

import "time"

// The dispatcher's wake-ups are at least so far apart: more, the more arrivals were due at the last one. A wake-up
// costs as much CPU as several requests, so close arrivals go out together; the lag is reported. Up to some 10,000
// arrivals per second it is at most half a millisecond, then a whole one.
const (
	shortestSleep = 500 * time.Microsecond
	sleepEach     = 100 * time.Microsecond
	longestSleep  = time.Millisecond
)

type sleep struct {
	timer  *time.Timer
	wakeup *wakeup
	last   time.Duration // when it had to wake last: being late does not lengthen the interval
}

func newSleep(a *wakeup) *sleep { return &sleep{timer: time.NewTimer(time.Hour), wakeup: a} }

func (s *sleep) stop() { s.timer.Stop() }

// until waits for a time, or for something to do before it.
func (s *sleep) until(e *engine, t time.Duration) {
	if e.queue.len() > 0 {
		t = min(t, e.queue.head().deadline)
	}
	interval := max(shortestSleep, min(time.Duration(e.round)*sleepEach, longestSleep))
	t = max(t, s.last+interval)
	e.round = 0
	// Only a select hears of a freed stream.
	if wait := t - e.now(); wait > 0 && (e.freed != nil || !s.wakeup.wait(e.start, t)) {
		s.timer.Reset(wait)
		s.wakeup.set(wait)
		select {
		case <-s.timer.C:
		case <-e.woken:
		case <-e.freed:
		}
	}
	now := e.now()
	s.last = max(min(t, now), now-interval)
}
