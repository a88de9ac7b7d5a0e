package capacity

import "math"

// sawNothing takes in a trial that told nothing. Two in a row end the search, unless the generator was the limit and something is
// left to try below.
func (s *Search) sawNothing(load float64, outcome Outcome) {
	if s.unusable != outcome {
		s.unusable, s.invalid = outcome, 0
	}
	s.invalid++
	most := s.o.Trials
	if s.confirming {
		most += 2 * confirmOf // at the end of the range, and at the lower end
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

// belowCeiling is the upper end of the loads that are tried below the ceiling: the ceiling, or the lowest bad load if that is lower and
// either more never held, or what held is near the ceiling.
func (s *Search) belowCeiling() float64 {
	if s.held < s.lowestBad || s.near(s.held, s.ceiling) {
		return min(s.ceiling, s.lowestBad)
	}
	return s.ceiling
}

// stuck reports whether nothing is left to try below the ceiling, above which the capacity probably lies.
func (s *Search) stuck() bool {
	badBelow := s.held < s.lowestBad && s.lowestBad < s.ceiling
	return s.bad > 0 && !badBelow && s.near(s.held, s.ceiling) && s.quantile(0.5) >= s.ceiling
}

// tryAbove forgets the ceiling once if a load was bad: the generator managed that one, so others may have used the machine since.
// Otherwise the generator ended first.
func (s *Search) tryAbove() {
	if s.bad == 0 || s.forgotten {
		s.answer = GeneratorFirst
		return
	}
	s.ceiling, s.invalid, s.forgotten = math.Inf(1), 0, true
}
