package node

import (
	"context"
	"errors"
	"math/rand/v2"
	"testing"
	"time"

	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"
)

const interval = 10 * time.Second

// fakeClock calls back on new goroutines, as the real clock does.
type fakeClock struct{ *clocktesting.FakeClock }

func newFakeClock(t time.Time) fakeClock { return fakeClock{clocktesting.NewFakeClock(t)} }

func (c fakeClock) AfterFunc(d time.Duration, f func()) clock.Timer {
	return c.FakeClock.AfterFunc(d, func() { go f() })
}

// beats runs one heartbeat with a clock that only the test moves. Renewals wait until the test responds to them.
type beats struct {
	t         *testing.T
	clock     fakeClock
	ledger    *ledger
	heartbeat *heartbeat
	asked     chan chan error // a renewal began; send its response
	dropped   chan struct{}   // a renewal was given up
	broken    chan struct{}
}

func newBeats(t *testing.T) *beats {
	b := &beats{
		t: t, clock: newFakeClock(time.Unix(1000, 0)),
		asked: make(chan chan error, 10), dropped: make(chan struct{}, 10), broken: make(chan struct{}, 10),
	}
	var err error
	b.ledger, err = newLedger(nil, interval)
	must(t, err)
	workers := newWorkers()
	life := newLife(t.Context(), b.clock, workers, b.ledger, rand.New(rand.NewPCG(1, 1)))
	b.heartbeat = &heartbeat{
		life: life, interval: interval,
		renew: func(ctx context.Context, done func(error)) {
			answer := make(chan error, 1)
			b.asked <- answer
			select {
			case err := <-answer:
				done(err)
			case <-ctx.Done():
				b.dropped <- struct{}{}
				done(ctx.Err())
			}
		},
		broken: func() { b.broken <- struct{}{} },
	}
	t.Cleanup(func() {
		life.cancel()
		b.heartbeat.stop()
		<-workers.close()
	})
	b.heartbeat.start()
	return b
}

// until moves the clock to d past the next renewal's intended time.
func (b *beats) until(d time.Duration) {
	b.heartbeat.mu.Lock()
	due := b.heartbeat.due
	b.heartbeat.mu.Unlock()
	b.clock.SetTime(due.Add(d))
}

func (b *beats) begun() chan error {
	b.t.Helper()
	select {
	case answer := <-b.asked:
		return answer
	case <-time.After(patience):
		b.t.Fatal("no renewal began")
		return nil
	}
}

func (b *beats) expect(acknowledged, byGenerator, byServer int64) {
	b.t.Helper()
	eventually(b.t, "counts of heartbeats", func() bool {
		r := b.ledger.results()
		return r.Heartbeats == acknowledged && r.MissedByGenerator == byGenerator && r.MissedByServer == byServer
	})
}

func TestHeartbeatCountsFromItsIntendedStart(t *testing.T) {
	b := newBeats(t)
	b.until(2 * time.Second) // we are two seconds late
	answer := b.begun()
	b.clock.Step(time.Second) // the server takes one
	answer <- nil
	b.expect(1, 0, 0)
	if l := b.ledger.results().Heartbeat; l.Max != 3 {
		t.Errorf("latency is %v s, want 3 from the intended start", l.Max)
	}
}

func TestStalledServerIsBlamedAndBoundsOurRequests(t *testing.T) {
	b := newBeats(t)
	for range 2 {
		b.until(0)
		b.begun() // and gets no response
	}
	<-b.dropped
	b.until(0)
	answer := b.begun()
	<-b.dropped
	b.expect(0, 0, 2)
	select {
	case <-b.broken:
	case <-time.After(patience):
		t.Error("two missed renewals in a row did not close the connection")
	}
	answer <- nil
	b.expect(1, 0, 2)
	if l := b.ledger.results().Heartbeat; l.Count != 3 || l.Max < 10 {
		t.Errorf("the stall is missing in the latencies: %+v", l)
	}
}

func TestStarvedGeneratorBlamesItself(t *testing.T) {
	b := newBeats(t)
	b.until(3*interval + time.Second) // the process did not run for over three intervals
	answer := b.begun()
	answer <- nil
	b.expect(1, 3, 0)
	if l := b.ledger.results().Heartbeat; l.Count != 4 || l.Max < 30 {
		t.Errorf("the delay is missing in the latencies: %+v", l)
	}
}

func TestRenewalBegunTooLateIsNotTheServersFault(t *testing.T) {
	b := newBeats(t)
	b.until(6 * time.Second) // more than half of the interval is gone
	b.begun()
	b.until(0)
	b.begun() <- nil
	b.expect(1, 1, 0)
}

func TestFrozenGeneratorDoesNotBlameTheServer(t *testing.T) {
	b := newBeats(t)
	b.until(0)
	b.begun()                // begun in time; then the process is stopped,
	b.until(7 * time.Second) // and the response is read long after it was due
	b.begun() <- nil
	b.expect(1, 1, 0)
}

func TestRefusedRenewalIsTriedAgainInItsInterval(t *testing.T) {
	b := newBeats(t)
	b.until(0)
	b.begun() <- errors.New("refused")
	eventually(t, "it waits to try again", b.waiting)
	b.clock.Step(time.Second)
	b.begun() <- nil
	b.expect(1, 0, 0)
}

// waiting reports whether two timers run: the next renewal's and a retry's.
func (b *beats) waiting() bool { return b.clock.Waiters() >= 2 }

func TestPhasesAreDrawnFromTheSeed(t *testing.T) {
	due := func(seed uint64) time.Time {
		b := newBeats(t)
		b.heartbeat.stop()
		b.heartbeat.life.rng = rand.New(rand.NewPCG(seed, 1))
		b.heartbeat.start()
		return b.heartbeat.due
	}
	if a, again, other := due(1), due(1), due(2); !a.Equal(again) || a.Equal(other) {
		t.Errorf("seed 1: %v and %v, seed 2: %v", a, again, other)
	}
}

func TestLeaseIsRenewedFromWhatWasLastSeen(t *testing.T) {
	clock := newFakeClock(time.Now())
	s, f := started(t, func(c *Config) { c.clock = clock })
	k := f.kubelets[0]
	k.mu.Lock()
	renewals := k.heartbeat
	k.mu.Unlock()
	var versions []string
	for i := range 2 {
		renewals.mu.Lock()
		due := renewals.due
		renewals.mu.Unlock()
		clock.SetTime(due)
		// The stub records a request before it executes it: look at its state only after the response.
		eventually(t, "it is renewed", func() bool { return f.Results().Heartbeats == int64(i+1) })
		s.locked(func() {
			l := s.leases["sg-0"]
			if !l.Spec.RenewTime.Time.Equal(due.Truncate(time.Microsecond)) || len(l.OwnerReferences) != 1 {
				t.Errorf("renewed at %v, want %v; owners %v", l.Spec.RenewTime, due, l.OwnerReferences)
			}
			versions = append(versions, l.ResourceVersion)
		})
	}
	if versions[0] == versions[1] {
		t.Errorf("versions %v", versions)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := len(s.seen("GET", "/leases/sg-0")); n != 1 { // at the registration
		t.Errorf("%d reads of the lease, want 1: an undisturbed renewal needs none", n)
	}
}

func TestRenewalsOfNodesMeet(t *testing.T) {
	for nodes, want := range map[int]time.Duration{1: 100 * time.Millisecond, 500: 100 * time.Millisecond, 5000: 10 * time.Millisecond} {
		if got := renewalSlot(nodes, interval); got != want {
			t.Errorf("%d nodes share a slot of %v, want %v", nodes, got, want)
		}
	}
	life := newLife(t.Context(), clock.RealClock{}, newWorkers(), nil, rand.New(rand.NewPCG(1, 1)))
	h := &heartbeat{life: life, interval: interval, slot: 100 * time.Millisecond, origin: life.began}
	for range 100 {
		now := life.began.Add(time.Duration(life.float() * float64(time.Hour)))
		due := h.drawn(now)
		if due.Sub(h.origin)%h.slot != 0 || due.Before(now) || due.Sub(now) > interval+h.slot {
			t.Fatalf("due %v after %v", due.Sub(h.origin), now.Sub(h.origin))
		}
	}
}
