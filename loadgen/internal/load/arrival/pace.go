// Package arrival computes when the arrivals of an open-loop load are due. Its functions are pure: they use no
// goroutine and no clock. The pacers are similar to vegeta's (tsenart/vegeta lib/pacer.go), but return the intended
// time of each arrival instead of the time to wait. Latency is measured from the intended time, so a late dispatcher
// must not change it.
package arrival

import (
	"fmt"
	"math"
	"math/rand/v2"
	"time"
)

// Never is the time of an arrival that does not exist.
const Never = time.Duration(math.MaxInt64)

// MaxRate is the highest rate that a Pacer accepts, in arrivals per second. At this rate, arrivals are a microsecond
// apart, which is the resolution of latencies.
const MaxRate = 1e6

// Pacer is a schedule of arrivals that depends only on its parameters. It is not safe for concurrent use. Calls with
// growing arguments are cheap. For a smaller argument, a Pacer may have to generate all arrivals again from arrival 0.
type Pacer interface {
	// At returns the intended time of arrival n, relative to the start, or Never if there is no such arrival.
	// Arrivals are numbered from 0. The time does not decrease with n.
	At(n int64) time.Duration
	// Due returns the number of arrivals whose intended time is at most elapsed.
	Due(elapsed time.Duration) int64
}

// New returns the pacer of an arrival process with a steady mean rate in arrivals per second. A rate of 0 means no arrivals.
// The processes are:
//
//   - "constant": arrival n is due n/rate seconds after the start.
//   - "poisson": the gaps are independent and exponentially distributed, like arrivals from many independent clients;
//     seed determines them.
func New(arrival string, rate float64, seed int64) (Pacer, error) {
	return NewShaped(arrival, rate, Shape{}, seed)
}

// NewShaped returns the pacer of an arrival process whose rate changes according to the shape; rate is the rate at
// the start, in arrivals per second. A "constant" arrival is due whenever the integral of the rate reaches 0, 1, 2,
// ... A "poisson" arrival is due whenever the integral reaches a point of a Poisson process of rate 1 (inversion of
// the cumulative intensity: Çınlar 1975).
func NewShaped(arrival string, rate float64, s Shape, seed int64) (Pacer, error) {
	if arrival != "constant" && arrival != "poisson" {
		return nil, fmt.Errorf("unknown arrival %q; write constant or poisson", arrival)
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
		return fmt.Errorf("invalid rate %g/s; write a rate from 0/s to %.0f/s", rate, float64(MaxRate))
	}
	return nil
}

// constant is a Pacer with equal gaps between arrivals. gap is in nanoseconds; it is infinite at rate 0.
type constant struct{ gap float64 }

// At returns n times the gap. It multiplies instead of adding up gaps, so the error stays below a nanosecond for 100
// days.
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
	// Correct a rounding error of the quotient by comparing with At.
	n := int64(float64(elapsed)/c.gap) + 1
	for n > 0 && c.At(n-1) > elapsed {
		n--
	}
	for c.At(n) <= elapsed {
		n++
	}
	return n
}

// toDuration rounds ns to a Duration. It returns Never if ns is too large for a Duration.
func toDuration(ns float64) time.Duration {
	if !(ns < math.MaxInt64) {
		return Never
	}
	return time.Duration(math.Round(ns))
}

// times generates arrival times: each call returns the time of the next arrival, in nanoseconds since the start. Times
// never decrease. After the last arrival, times returns infinity.
type times func() float64

// sequence is a Pacer for arrival times that must be generated one after another. At and Due each have a cursor. A
// cursor moves forward when its argument increases, and restarts when its argument decreases.
type sequence struct{ at, due cursor }

// newSequence returns a Pacer for generated arrival times. Each call of `begin` must return a new generator, and all
// generators must produce the same times: a cursor restarts by calling `begin` again.
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
	time   time.Duration // time of arrival n
	before time.Duration // time of arrival n-1
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

// evenly returns a generator of the points 0, 1, 2, ...
func evenly() func() float64 {
	n := -1.0
	return func() float64 {
		n++
		return n
	}
}

// exponential returns a generator of the points of a Poisson process of rate 1.
func exponential(seed int64) func() float64 {
	// The constant distinguishes this random sequence from others with the same seed.
	source := rand.New(rand.NewPCG(uint64(seed), 0x706f6973736f6e))
	sum := 0.0
	return func() float64 {
		sum += source.ExpFloat64()
		return sum
	}
}

// warped converts the points of a process of rate 1 to arrival times. `inverse` returns the time at which a given
// number of arrivals is expected.
func warped(points func() func() float64, inverse func(float64) float64) func() times {
	return func() times {
		next := points()
		return func() float64 { return inverse(next()) }
	}
}
