package arrival

import (
	"fmt"
	"math"
	"sort"
	"time"
)

// Shape describes how a rate changes over time, like scenario.Shape. The zero value is a steady rate.
type Shape struct {
	// Kind is "ramp", "step", "burst", "sine" or "replay", or "" for a steady rate.
	Kind string
	// To is the final rate of a ramp or of steps, in arrivals per second.
	To float64
	// Over is the length of a ramp.
	Over time.Duration
	// Steps is the number of equal steps from the rate at the start to To.
	Steps int
	// Every is the length of a step, the period of a sine, or the interval between bursts (also before the first
	// burst).
	Every time.Duration
	// Burst is the number of arrivals in a burst. They are all due at the same time.
	Burst int
	// Amplitude is the amplitude of a sine as a fraction of the rate: greater than 0, at most 1.
	Amplitude float64
	// Times are the times of a replay's arrivals, in seconds, in ascending order. A replay divides them by Speed.
	Times []float64
	Speed float64
}

func (s Shape) validate() error {
	if err := possible(s.To); err != nil {
		return err
	}
	switch s.Kind {
	case "":
	case "ramp":
		if s.Over <= 0 {
			return fmt.Errorf("a ramp requires a positive length, not %v; write over: 1m", s.Over)
		}
	case "step":
		if s.Steps < 1 || s.Every <= 0 {
			return fmt.Errorf("invalid steps: %d of %v; write steps: 5 and every: 30s", s.Steps, s.Every)
		}
	case "burst":
		if s.Burst < 1 || s.Every <= 0 {
			return fmt.Errorf("invalid bursts: %d every %v; write burst: 100 and every: 10s", s.Burst, s.Every)
		}
	case "sine":
		if !(s.Amplitude > 0 && s.Amplitude <= 1) || s.Every <= 0 {
			return fmt.Errorf("invalid sine: amplitude %g and period %v; write amplitude: 0.5 and every: 1m", s.Amplitude, s.Every)
		}
	case "replay":
		if !(s.Speed > 0) {
			return fmt.Errorf("a replay requires a positive speed, not %g; write speed: 1", s.Speed)
		}
		if !sort.Float64sAreSorted(s.Times) || len(s.Times) > 0 && !(s.Times[0] >= 0) {
			return fmt.Errorf("the times of a replay must not decrease or be negative")
		}
	default:
		return fmt.Errorf("unknown shape %q; write ramp, step, burst, sine or replay", s.Kind)
	}
	return nil
}

// inverse returns the inverse of the cumulative rate: a function that converts an expected number of arrivals to the
// time, in nanoseconds, at which that number is reached. If it is never reached, the time is infinite.
func (s Shape) inverse(rate float64) func(float64) float64 {
	seconds := func(u float64) float64 { return linear(u, rate) }
	switch s.Kind {
	case "ramp":
		seconds = func(u float64) float64 { return inverseRamp(u, rate, s.To, s.Over.Seconds()) }
	case "step":
		seconds = func(u float64) float64 { return inverseSteps(u, rate, s.To, s.Steps, s.Every.Seconds()) }
	case "sine":
		seconds = func(u float64) float64 { return inverseSine(u, rate, s.Amplitude, s.Every.Seconds()) }
	}
	return func(u float64) float64 { return seconds(u) * float64(time.Second) }
}

func linear(u, rate float64) float64 {
	if rate == 0 {
		return math.Inf(1)
	}
	return u / rate
}

// inverseRamp returns the time at which u arrivals are expected. The rate changes linearly from `from` to `to` within
// the time `over`. During the ramp, inverseRamp solves from*t + slope*t*t/2 = u, with a formula that does not subtract
// nearly equal numbers.
func inverseRamp(u, from, to, over float64) float64 {
	if full := (from + to) / 2 * over; u >= full {
		return over + linear(u-full, to)
	}
	slope := (to - from) / over
	root := math.Sqrt(max(from*from+2*slope*u, 0))
	if from+root == 0 {
		return 0
	}
	return 2 * u / (from + root)
}

// inverseSteps returns the time at which u arrivals are expected under a rate that changes in steps. After the last
// step, the rate stays at the value `to`.
func inverseSteps(u, from, to float64, steps int, every float64) float64 {
	for k := range steps {
		rate := from + (to-from)*float64(k)/float64(steps)
		if u < rate*every {
			return float64(k)*every + linear(u, rate)
		}
		u -= rate * every
	}
	return float64(steps)*every + linear(u, to)
}

// inverseSine returns the time t at which rate*t + rate*a*P/2pi*(1-cos(2pi*t/P)) reaches u, where a is the amplitude
// and P the period. It searches t by bisection.
func inverseSine(u, rate, amplitude, period float64) float64 {
	if rate == 0 {
		return math.Inf(1)
	}
	swing := amplitude * period / (2 * math.Pi)
	high := u / rate
	low := max(high-2*swing, 0)
	for range 60 {
		t := (low + high) / 2
		if t+swing*(1-math.Cos(2*math.Pi*t/period)) < u/rate {
			low = t
		} else {
			high = t
		}
	}
	return high
}

// withBursts adds the bursts of s to the arrival times of base.
func withBursts(base func() times, s Shape) func() times {
	return func() times {
		next := base()
		waiting := next()
		burst, left := float64(s.Every), s.Burst
		return func() float64 {
			if waiting < burst {
				t := waiting
				waiting = next()
				return t
			}
			t := burst
			if left--; left == 0 {
				burst, left = burst+float64(s.Every), s.Burst
			}
			return t
		}
	}
}

func replay(s Shape) func() times {
	return func() times {
		i := -1
		return func() float64 {
			if i++; i >= len(s.Times) {
				return math.Inf(1)
			}
			return s.Times[i] / s.Speed * float64(time.Second)
		}
	}
}
