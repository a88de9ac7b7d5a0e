package scenario

// DefaultMinAchieved is the default of MinAchieved: the fraction of the requested work that each load and action must
// do for the run to pass. It allows for jitter and rounding, which cost less than 5%.
const DefaultMinAchieved = 0.95

// LeastAchieved returns the fraction of the requested work that a load or action must do. `own` is its MinAchieved, or
// nil. If neither own nor the scenario sets the fraction, `said` is false and least is the default. s may be nil.
func (s *Scenario) LeastAchieved(own *Bound) (least float64, said bool) {
	switch {
	case own != nil:
		return own.Value, true
	case s != nil && s.MinAchieved != nil:
		return s.MinAchieved.Value, true
	}
	return DefaultMinAchieved, false
}

func (v *validator) minAchieved(path string, b *Bound) {
	switch {
	case b == nil:
	case !b.Fits(Ratio):
		v.fail(path, "write it as 95%; 0% turns off this check", "%s is not a percentage", b)
	case b.Value < 0 || b.Value > 1:
		v.fail(path, "from 0% to 100%; 0% turns off this check", "%s is out of bounds", b)
	}
}
