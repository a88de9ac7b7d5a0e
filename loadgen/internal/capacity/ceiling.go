package capacity

import "math"

// sawNothing records a trial that says nothing about the capacity: its outcome is Invalid or NoData. Two such trials in
// a row end the search, unless the generator was the limit and the search can try other loads.
func (s *Search) sawNothing(load float64, outcome Outcome) {
	if s.unusable != outcome {
		s.unusable, s.invalid = outcome, 0
	}
	s.invalid++
	most := s.o.Trials
	if s.confirming {
		most += 2 * confirmOf // for confirming trials at the upper end of the range and then at the lower end of the interval
	}
	switch {
	case s.invalid < invalidInRow && s.trials < most:
	case s.invalid < invalidInRow:
		s.answer = Unfinished
	case outcome == NoData:
		s.answer = Unjudged
	case s.confirming || s.held == 0 || s.trials >= s.o.Trials:
		s.answer = GeneratorFirst
	case load < s.ceiling && (load > s.lowestBad || !s.near(s.held, load)):
		s.ceiling, s.invalid = load, 0
	default:
		s.tryAbove()
	}
}

// belowCeiling returns the upper bound of the loads to try: the ceiling (the lowest load at which the generator was the
// limit twice in a row) or the lowest bad load, whichever is lower. It ignores the lowest bad load if a higher load was
// good and is not near the ceiling.
func (s *Search) belowCeiling() float64 {
	if s.held < s.lowestBad || s.near(s.held, s.ceiling) {
		return min(s.ceiling, s.lowestBad)
	}
	return s.ceiling
}

// stuck reports whether the ceiling (see belowCeiling) blocks the search: no load below it is worth a trial, and the
// capacity probably lies above it.
func (s *Search) stuck() bool {
	badBelow := s.held < s.lowestBad && s.lowestBad < s.ceiling
	return s.bad > 0 && !badBelow && s.near(s.held, s.ceiling) && s.quantile(0.5) >= s.ceiling
}

// tryAbove removes the ceiling (see belowCeiling), so that the search tries higher loads again. It does this at most once,
// and only if a trial was bad. A bad trial shows that the generator could send that load, so other processes may have
// caused the invalid trials. Otherwise tryAbove ends the search with the generator as the limit.
func (s *Search) tryAbove() {
	if s.bad == 0 || s.forgotten {
		s.answer = GeneratorFirst
		return
	}
	s.ceiling, s.invalid, s.forgotten = math.Inf(1), 0, true
}
