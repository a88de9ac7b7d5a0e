package request

import (
	"testing"
	"time"

	"github.com/stormglass/stormglass/loadgen/internal/load"
	"github.com/stormglass/stormglass/loadgen/internal/stall"
	"github.com/stormglass/stormglass/loadgen/scenario"

	"github.com/stormglass/stormglass/loadgen/internal/apiclient/h2conn/h2test"
)

// stopped returns a meter whose next tick has been overdue for the given time.
func stopped(since time.Duration) *stall.Meter {
	m, due := &stall.Meter{}, time.Now().Add(-since)
	m.Ticked(due, due, due)
	return m
}

// The external latency leaves out the time in which the generator was stopped.
func TestExternalLatencyLeavesOutStall(t *testing.T) {
	for name, stalls := range map[string]*stall.Meter{"run on time": nil, "stopped": stopped(0)} {
		s := hold(t)
		to := target(s.Server)
		to.Stalls = stalls
		r := newLoad(t, to, schedule{1, 0}, nil)
		stop := start(t, r)
		answer := <-s.asked
		began := time.Now()
		h2test.Await(t, "some time", func() bool { return time.Since(began) > 20*time.Millisecond })
		answer()
		h2test.Await(t, "the answer", func() bool { return one(r).Succeeded == 1 })
		got := stop()
		if got.Latency.Max < 0.02 {
			t.Errorf("%s: latency %v", name, got.Latency.Max)
		}
		if stalls == nil && got.External.Max < 0.02 || stalls != nil && got.External.Max > 0 {
			t.Errorf("%s: of %v s %v were external", name, got.Latency.Max, got.External.Max)
		}
		addUp(t, got)
	}
}

// The generator itself causes arrivals without a free slot after a stall, and requests that time out during a stall. Others are
// not counted as its own.
func TestUnsentAndTimedOutLate(t *testing.T) {
	for name, c := range map[string]struct {
		stalls *stall.Meter
		late   int64
	}{"run on time": {nil, 0}, "stopped": {stopped(stall.Long), 4}} {
		s := hold(t)
		to := target(s.Server)
		to.Stalls = c.stalls
		r := newLoad(t, to, schedule{5, 0}, func(_ *gets, l *scenario.Load) {
			l.MaxInFlight, l.Timeout = 1, scenario.Duration(2*time.Second) // half of it is longer than a busy machine delays the test
		})
		stop := start(t, r)
		h2test.Await(t, "the timeout", func() bool { return one(r).Outcomes["timeout"] == 1 })
		got := stop()
		if got.Unsent != 4 || got.UnsentLate != c.late || got.FailedLate != c.late/4 {
			t.Errorf("%s: %d unsent, %d of them late, %d failed late; want 4, %d, %d", name, got.Unsent, got.UnsentLate, got.FailedLate, c.late, c.late/4)
		}
	}
}

func TestFailureIsTheGenerators(t *testing.T) {
	ms := time.Millisecond
	for name, c := range map[string]struct {
		own     ownDelay
		outcome load.Outcome
		latency time.Duration
		want    bool
	}{
		"timed out, mostly by lag":               {ownDelay{lag: 60 * ms}, load.TimedOut, 100 * ms, true},
		"timed out, mostly not":                  {ownDelay{lag: 10 * ms, stalled: 30 * ms}, load.TimedOut, 100 * ms, false},
		"refused in a burst":                     {ownDelay{stalled: 90 * ms, burst: true}, load.Refused, 100 * ms, false},
		"rejected in a burst":                    {ownDelay{stalled: 90 * ms, burst: true}, 429, 100 * ms, true},
		"rejected after a short stall":           {ownDelay{stalled: 90 * ms}, 429, 100 * ms, false},
		"rejected by a server, handled late":     {ownDelay{lag: 90 * ms}, 500, 100 * ms, false},
		"reset after a burst that was long over": {ownDelay{lag: 0, stalled: 10 * ms, burst: true}, load.Reset, 100 * ms, false},
	} {
		if got := c.own.failed(c.outcome, c.latency); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// Rates are per second in which arrivals were due, no matter how long the last requests took. Requests that end after
// the phase are its backlog, and not achieved in it.
func TestRatesLeaveOutTheDrain(t *testing.T) {
	s := hold(t)
	r := newLoad(t, target(s.Server), schedule{10, time.Millisecond}, nil)
	stop := start(t, r)
	h2test.Await(t, "all sent", func() bool { return one(r).Sent == 10 })
	for range 4 {
		(<-s.asked)()
	}
	h2test.Await(t, "four answers", func() bool { return one(r).Succeeded == 4 })
	go func() { // once the arrivals have ended
		h2test.Await(t, "the end of the arrivals", func() bool { return r.engine.last.Load() > 0 })
		after := time.Now()
		h2test.Await(t, "some time", func() bool { return time.Since(after) > 100*time.Millisecond })
		for range 6 {
			(<-s.asked)()
		}
	}()
	got := stop()
	if offered, achieved := float64(got.Offered)/got.DueSeconds, float64(4-got.Overdue)/got.DueSeconds; got.OfferedRate != offered || got.AchievedRate != achieved {
		t.Errorf("offered %v/s, achieved %v/s in %v s; want %v and %v", got.OfferedRate, got.AchievedRate, got.DueSeconds, offered, achieved)
	}
	if got.Succeeded != 10 || got.AnsweredInPhase() != 4 || got.Backlog != 6 {
		t.Errorf("%d succeeded, %d of them in the phase, a backlog of %d; want 10, 4 and 6", got.Succeeded, got.AnsweredInPhase(), got.Backlog)
	}
	if wait := got.Latency.Max; got.DueSeconds > wait {
		t.Errorf("arrivals were due for %v s, including the %v s of the drain", got.DueSeconds, wait)
	}
}

// The arrivals of a finished schedule were due for as many gaps as there are arrivals, not until the last response. So
// the offered rate equals the scenario's rate.
func TestRateOfAScheduleThatIsOver(t *testing.T) {
	s := hold(t)
	r := newLoad(t, target(s.Server), schedule{10, time.Millisecond}, nil)
	stop := start(t, r)
	h2test.Await(t, "all sent", func() bool { return one(r).Sent == 10 })
	h2test.Await(t, "some time", func() bool { return time.Since(r.engine.start) > 100*time.Millisecond })
	for range 10 {
		(<-s.asked)()
	}
	h2test.Await(t, "the answers", func() bool { return one(r).Succeeded == 10 })
	if got := stop(); got.DueSeconds != 0.01 || got.AnsweredInPhase() != 10 || got.Backlog != 0 {
		t.Errorf("due for %v s, %d answered, a backlog of %d; want 0.01, 10, 0", got.DueSeconds, got.AnsweredInPhase(), got.Backlog)
	}
}

// Answers count in the phase in which they arrive. Requests that are open at the end of a phase are its backlog.
func TestAnswersCountInThePhaseThatTheyComeIn(t *testing.T) {
	s := hold(t)
	r := newLoad(t, target(s.Server), schedule{8, time.Millisecond}, nil)
	stop := start(t, r)
	h2test.Await(t, "all sent", func() bool { return one(r).Sent == 8 })
	for range 3 {
		(<-s.asked)()
	}
	h2test.Await(t, "three answers", func() bool { return one(r).Succeeded == 3 })
	r.BeginPhase("calm", time.Now())
	for range 5 {
		(<-s.asked)()
	}
	h2test.Await(t, "all answers", func() bool { return one(r).Succeeded == 8 })
	if got := stop(); got.AnsweredInPhase() != 3 || got.Backlog != 5 {
		t.Errorf("%d answered in the phase and a backlog of %d, want 3 and 5", got.AnsweredInPhase(), got.Backlog)
	}
}

// Answers after the load's last arrival are overdue and do not count for its rate.
func TestAnswersAfterTheScheduleAreOverdue(t *testing.T) {
	s := hold(t)
	r := newLoad(t, target(s.Server), schedule{10, time.Millisecond}, nil)
	stop := start(t, r)
	for range 4 {
		(<-s.asked)()
	}
	h2test.Await(t, "four answers", func() bool { return one(r).Succeeded == 4 })
	h2test.Await(t, "the end of the schedule", func() bool {
		dried := r.engine.dried.Load()
		return dried > 0 && r.engine.now() > time.Duration(dried)
	})
	for range 6 {
		(<-s.asked)()
	}
	h2test.Await(t, "all answers", func() bool { return one(r).Succeeded == 10 })
	got := stop()
	if early := got.AnsweredInPhase() - got.Overdue; early > 4 || got.AchievedRate != float64(early)/got.DueSeconds || got.AnsweredInPhase() != 10 || got.Backlog != 0 {
		t.Errorf("got %d responses, %d of them overdue, achieved %v/s in %v s, backlog %d", got.AnsweredInPhase(), got.Overdue, got.AchievedRate, got.DueSeconds, got.Backlog)
	}
}

// A failure after the end of the schedule does not count as an overdue response.
func TestLateFailuresAreNotOverdue(t *testing.T) {
	var s stats
	s.came(503, true)
	s.came(201, true)
	s.came(201, false)
	if s.ended != 3 || s.answered != 2 || s.overdue != 1 {
		t.Errorf("%d ended, %d answered, %d overdue; want 3, 2 and 1", s.ended, s.answered, s.overdue)
	}
}
