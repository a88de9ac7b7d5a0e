package capacity

import "math"

// sawNothing records a trial without a result: Invalid or NoData. Two such trials in a row end the search, unless the
// generator was the limit and there is still a lower load to try.
func (s *Search) sawNothing(load float64, outcome Outcome) {
	if s.unusable != outcome {
		s.unusable, s.invalid = outcome, 0
	}
	s.invalid++
	most := s.o.Trials
	if s.confirming {
		most += 2 * confirmOf // confirming trials may run at the upper end of the range and then at the lower end of the interval
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

// belowCeiling returns the upper end of the loads to try below the ceiling: the ceiling or the lowest bad load,
// whichever is lower. If a load above the lowest bad load has held, and it is not near the ceiling, the upper end is
// the ceiling.
func (s *Search) belowCeiling() float64 {
	if s.held < s.lowestBad || s.near(s.held, s.ceiling) {
		return min(s.ceiling, s.lowestBad)
	}
	return s.ceiling
}

// stuck reports whether no load below the ceiling is worth a trial and the capacity probably lies above the ceiling.
func (s *Search) stuck() bool {
	badBelow := s.held < s.lowestBad && s.lowestBad < s.ceiling
	return s.bad > 0 && !badBelow && s.near(s.held, s.ceiling) && s.quantile(0.5) >= s.ceiling
}

// tryAbove removes the ceiling once, so that the search tries higher loads again. This requires that a load was bad:
// the generator managed that load, and other processes may have caused the invalid trials. In all other cases, the
// search ends with the generator as the limit.
func (s *Search) tryAbove() {
	if s.bad == 0 || s.forgotten {
		s.answer = GeneratorFirst
		return
	}
	s.ceiling, s.invalid, s.forgotten = math.Inf(1), 0, true
}
