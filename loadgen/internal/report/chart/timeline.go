package chart

// Timeline is the time of a run across a page or a picture: its phases, what was
// done and what happened, and the tracks of what lasted.
type Timeline struct {
	Grid
	Bands     []Band
	Events    []Event
	TimeTicks []Mark
	Tracks    []Track
	Origin    string // what a picture that stands alone says of its run
}

// Band is a phase on the time axis. Left and Width are in percent, X and W in
// the coordinates of a plot.
type Band struct {
	Name, Took, Left, Width, X, W string
	Odd, Fault, Narrow            bool

	From, To float64 // shares of the axis
}

// Event is a vertical mark with its number; the list below the ruler says
// what it was.
type Event struct {
	N                         int
	Left, X                   string
	Lane                      int
	Kind, Name, Detail, Clock string
	Fault                     bool

	At  float64 // share of the axis
	Bar bool    // a track has it too
}

// faults is the track of faults, if the run had any.
func (x *Timeline) faults() (Track, bool) {
	if len(x.Tracks) > 0 && x.Tracks[0].Name == FaultsTrack {
		return x.Tracks[0], true
	}
	return Track{}, false
}

// Lanes is how many lanes the marks need.
func (x *Timeline) Lanes() int {
	n := 0
	for _, e := range x.Events {
		n = max(n, e.Lane+1)
	}
	return n
}
