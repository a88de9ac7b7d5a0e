package scenario

// DefaultMinAchieved is the share of what a load or an action is asked below which a run does not pass, where the scenario says nothing.
// It is Stormglass' own: 5% are more than jitter and rounding take.
const DefaultMinAchieved = 0.95

// LeastAchieved is the share that a load or an action with its own MinAchieved must achieve, and whether it or the scenario says so. Nil:
// it says nothing. A nil Scenario has the default.
func (s *Scenario) LeastAchieved(own *Bound) (least float64, said bool) {
	switch {
	case own != nil:
		return own.Value, true
	case s != nil && s.MinAchieved != nil:
		return s.MinAchieved.Value, true
	}
	return DefaultMinAchieved, false
}

// minAchieved checks the share that must be achieved.
func (v *validator) minAchieved(path string, b *Bound) {
	switch {
	case b == nil:
	case !b.Fits(Ratio):
		v.fail(path, "write it as 95%; 0% is not judged", "%s is no share", b)
	case b.Value < 0 || b.Value > 1:
		v.fail(path, "from 0% (not judged) to 100%", "%s is out of bounds", b)
	}
}
