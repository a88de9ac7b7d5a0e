package arrival

import (
	"math/rand/v2"
	"time"
)

// times gives the times of arrivals in nanoseconds, not decreasing; infinite when there are no more.
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

// evenly are the points 0, 1, 2, ...
func evenly() func() float64 {
	n := -1.0
	return func() float64 {
		n++
		return n
	}
}

// exponential are the points of a Poisson process of rate 1.
func exponential(seed int64) func() float64 {
	// The second word only tells this use of the seed from others.
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
