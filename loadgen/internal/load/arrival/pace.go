// Package arrival computes when the arrivals of an open-loop load are due, with pure functions: no goroutine, no
// clock. It follows vegeta's pacers (tsenart/vegeta lib/pacer.go), but a pacer here returns the intended time of
// each arrival rather than a wait from now, because latency counts from the intended time and a late dispatcher
// must not move it.
package arrival

import (
	"fmt"
	"math"
	"math/rand/v2"
	"time"
)

// Never is the intended time of an arrival that never comes.
const Never = time.Duration(math.MaxInt64)

// MaxRate is the highest rate in arrivals per second: the resolution of latencies is a microsecond.
const MaxRate = 1e6

// Pacer is a schedule of arrivals that depends only on its parameters and the arguments. It must be used by one
// goroutine. Calls with arguments that do not decrease take constant time.
type Pacer interface {
	// At returns the intended time of arrival n (from 0) since the start, or Never if there is no such arrival.
	// It does not decrease with n.
	At(n int64) time.Duration
	// Due returns the number of arrivals whose intended time is at most elapsed.
	Due(elapsed time.Duration) int64
}

// New makes the pacer of an arrival process with a steady mean rate in
// arrivals per second, 0 for none:
//
//   - "constant": arrival n at n/rate, the first at once.
//   - "poisson": independent, exponentially distributed gaps, drawn by seed,
//     as many independent clients make them.
func New(arrival string, rate float64, seed int64) (Pacer, error) {
	return NewShaped(arrival, rate, Shape{}, seed)
}

// NewShaped makes the pacer of an arrival process whose rate, in arrivals per second, changes as the shape says.
// "constant" arrivals come when the integral of the rate reaches 0, 1, 2, ..., "poisson" ones when it reaches the
// points of a Poisson process of rate 1 (inversion of the cumulative intensity: Çınlar 1975).
func NewShaped(arrival string, rate float64, s Shape, seed int64) (Pacer, error) {
	if arrival != "constant" && arrival != "poisson" {
		return nil, fmt.Errorf("unknown arrival %q; there are constant and poisson", arrival)
	}
	if err := possible(rate); err != nil {
		return nil, err
	}
	if err := s.validate(); err != nil {
		return nil, err
	}
	if s.Kind == "" && arrival == "constant" {
		return constant{gap: float64(time.Second) / rate}, nil
	}
	if s.Kind == "replay" {
		return newSequence(replay(s)), nil
	}
	points := evenly
	if arrival == "poisson" {
		points = func() func() float64 { return exponential(seed) }
	}
	base := warped(points, s.inverse(rate))
	if s.Kind == "burst" {
		return newSequence(withBursts(base, s)), nil
	}
	return newSequence(base), nil
}

func possible(rate float64) error {
	if math.IsNaN(rate) || rate < 0 || rate > MaxRate {
		return fmt.Errorf("a rate of %g/s is impossible; write one from 0/s to %.0f/s", rate, float64(MaxRate))
	}
	return nil
}

// constant has the same gap in nanoseconds between arrivals, infinite at rate 0.
type constant struct{ gap float64 }

// At is never far off: n x gap is exact to a nanosecond for 100 days.
func (c constant) At(n int64) time.Duration {
	if math.IsInf(c.gap, 1) {
		return Never
	}
	return toDuration(float64(n) * c.gap)
}

func (c constant) Due(elapsed time.Duration) int64 {
	if elapsed < 0 || math.IsInf(c.gap, 1) {
		return 0
	}
	// The quotient may be off by a rounding error: At decides.
	n := int64(float64(elapsed)/c.gap) + 1
	for n > 0 && c.At(n-1) > elapsed {
		n--
	}
	for c.At(n) <= elapsed {
		n++
	}
	return n
}

// toDuration rounds nanoseconds; what a Duration cannot hold is Never.
func toDuration(ns float64) time.Duration {
	if !(ns < math.MaxInt64) {
		return Never
	}
	return time.Duration(math.Round(ns))
}

// times returns the times of arrivals in nanoseconds, not decreasing; infinite when there are no more.
type times func() float64

// sequence is a Pacer over times without a closed form. Cursors move on for larger arguments and start over for
// smaller ones.
type sequence struct{ at, due cursor }

// newSequence makes a pacer; begin starts the times over, always the same.
func newSequence(begin func() times) *sequence {
	s := &sequence{cursor{begin: begin}, cursor{begin: begin}}
	s.at.rewind()
	s.due.rewind()
	return s
}

func (s *sequence) At(n int64) time.Duration {
	if n < s.at.n {
		s.at.rewind()
	}
	for s.at.n < n && s.at.time != Never {
		s.at.step()
	}
	return s.at.time
}

func (s *sequence) Due(elapsed time.Duration) int64 {
	if s.due.n > 0 && elapsed < s.due.before {
		s.due.rewind()
	}
	for s.due.time <= elapsed && s.due.time != Never {
		s.due.step()
	}
	return s.due.n
}

type cursor struct {
	begin  func() times
	next   times
	n      int64
	time   time.Duration // of arrival n
	before time.Duration // of arrival n-1
}

func (c *cursor) rewind() {
	c.next = c.begin()
	c.n, c.before = 0, 0
	c.time = toDuration(c.next())
}

func (c *cursor) step() {
	c.before = c.time
	c.n++
	c.time = toDuration(c.next())
}

// evenly returns the points 0, 1, 2, ...
func evenly() func() float64 {
	n := -1.0
	return func() float64 {
		n++
		return n
	}
}

// exponential returns the points of a Poisson process of rate 1.
func exponential(seed int64) func() float64 {
	// The second word only distinguishes this use of the seed from others.
	source := rand.New(rand.NewPCG(uint64(seed), 0x706f6973736f6e))
	sum := 0.0
	return func() float64 {
		sum += source.ExpFloat64()
		return sum
	}
}

// warped turns points of a process of rate 1 into times.
func warped(points func() func() float64, inverse func(float64) float64) func() times {
	return func() times {
		next := points()
		return func() float64 { return inverse(next()) }
	}
}
