// Package capacity searches for the highest load that holds: it says which load to try next, and what the trials have
// told. It knows neither planes nor time.
//
// A load is raised, a rate to its double, until a trial is bad. From then on a trial tells of a psychometric curve: it is bad with
// probability lapse/2 + (1-lapse) Φ(ln(load/capacity)/spread). The posterior over capacity and spread is kept on a
// grid, and trials are made where it puts the capacity with 50, 35 and 65%, until its 90% interval is narrow.
package capacity

import (
	"fmt"
	"math"

	"gonum.org/v1/gonum/stat/distuv"
)

// Options of a search.
type Options struct {
	// From is the first load tried, To the end of the range. Least is the start of it.
	Least, From, To float64
	// Growth is how much the load grows from trial to trial until one is bad: 2 doubles it.
	Growth float64
	// Width is the interval's upper end over its lower one, less one, at which a search ends.
	Width float64
	// Trials is the most of them, without those that confirm.
	Trials int
	// Whole is true if loads are whole numbers: the search also ends when its interval lies between two neighbours.
	Whole bool
}

// Default is a search between two loads that begins at the lower one and doubles it.
func Default(least, to float64) Options {
	return Options{Least: least, From: least, To: to, Growth: 2, Width: 0.15, Trials: 40}
}

// Check reports what is wrong with options.
func (o Options) Check() error {
	switch {
	case !(o.Least > 0 && o.Least <= o.From && o.From < o.To) || math.IsInf(o.To, 0):
		return fmt.Errorf("the range is empty: from %v over %v to %v", o.Least, o.From, o.To)
	case o.Growth < 1.05 || o.Growth > 10:
		return fmt.Errorf("a growth of %v: from 1.05 to 10", o.Growth)
	}
	return o.checkEnd()
}

// checkEnd reports what is wrong with where a search ends, by its flags.
func (o Options) checkEnd() error {
	switch {
	case !(o.Width >= leastWidth && o.Width <= mostWidth):
		return fmt.Errorf("--width %v%%: from %v%% to %v%%", 100*o.Width, 100*leastWidth, 100*mostWidth)
	case o.Trials < leastTrials:
		return fmt.Errorf("--trials %d: at least %d", o.Trials, leastTrials)
	}
	return nil
}

const (
	leastWidth, mostWidth = 0.01, 1
	leastTrials           = 3

	lapse      = 0.02 // of trials that tell nothing
	confidence = 0.90 // of the interval
	gridStep   = 0.005
	confirmOf  = 5 // trials at the lower end
	confirmed  = 3 // of them that have to be good
	// mostWide times the asked width is the widest interval that counts as found when the trials are used up.
	mostWide = 2
	// invalidInRow trials are the generator's limit; one may be a minute in which others used the machine.
	invalidInRow = 2
)

// spreads are those of the grid: how wide the band is in which trials go either way.
func spreads() []float64 { return []float64{0.02, 0.04, 0.08, 0.16} }

// Outcome is the result of a trial.
type Outcome int

// The outcomes. An invalid trial tells nothing: the generator was the limit. Nor does one without data.
const (
	Good Outcome = iota
	Bad
	Invalid
	NoData
)

// Answer is the result of a search.
type Answer string

// The answers.
const (
	Found          Answer = "found"
	AboveRange     Answer = "above the range"
	BelowRange     Answer = "below the range"
	GeneratorFirst Answer = "the generator ended first"
	Unjudged       Answer = "trials could not be judged"
	Unconfirmed    Answer = "unconfirmed" // the lower end did not hold when it was tried again
	Unfinished     Answer = "unfinished"
)

// Estimate is what is known of the capacity.
type Estimate struct {
	Answer            Answer
	Low, Median, High float64 // 90% interval
	Held              float64 // the highest load of a good trial; 0: none
	Trials            int
	// ConfirmLoad is the lower end of the narrow interval: it was tried again Confirms times, and held ConfirmGood times.
	ConfirmLoad           float64
	ConfirmGood, Confirms int
}

// Search is a search as it goes on.
type Search struct {
	o      Options
	logs   []float64   // ln of the capacities of the grid
	weight [][]float64 // posterior by capacity and spread

	trials, bad, good     int
	unusable              Outcome // Invalid or NoData: the outcome of the last trials
	invalid               int     // how many of them in a row
	ceiling               float64 // the lowest load at which the generator was the limit twice
	forgotten             bool    // a ceiling was, once
	lowestBad, held       float64
	next                  int // of the shares at which trials are made
	confirming            bool
	endFailed             bool // the end of the range did not hold
	confirmLoad           float64
	confirmGood, confirms int
	answer                Answer
}

// New begins a search.
func New(o Options) (*Search, error) {
	if err := o.Check(); err != nil {
		return nil, err
	}
	s := &Search{o: o, lowestBad: math.Inf(1), ceiling: math.Inf(1)}
	from, to := math.Log(o.Least), math.Log(o.To)
	for x := from; x <= to+gridStep/2; x += gridStep {
		s.logs = append(s.logs, x)
		row := make([]float64, len(spreads()))
		for i := range row {
			row[i] = 1
		}
		s.weight = append(s.weight, row)
	}
	s.normalise()
	return s, nil
}

// Next is the load to try next; false: the search has ended.
func (s *Search) Next() (load float64, more bool) {
	switch {
	case s.answer != "":
		return 0, false
	case s.confirming:
		return s.confirmLoad, true
	case s.bad == 0 && !math.IsInf(s.ceiling, 1): // between what held and what the generator cannot do
		return math.Sqrt(s.held * s.ceiling), true
	case !s.began(): // a plane that did not hold the first load is not given more
		return s.o.From, true
	case s.bad == 0:
		return min(s.grown(s.held), s.o.To), true
	}
	load = min(s.likely(), s.grown(max(s.held, s.o.From)))
	if load >= s.ceiling {
		load = math.Sqrt(s.held * s.belowCeiling())
	}
	return load, true
}

// began reports whether a load held, or the first one did not twice.
func (s *Search) began() bool { return s.good > 0 || s.bad > 1 }

// grown is the next load after one that held. A whole number grows by one at least.
func (s *Search) grown(held float64) float64 {
	if s.o.Whole {
		return max(held+1, math.Round(held*s.o.Growth))
	}
	return held * s.o.Growth
}

// near reports whether no load between two is worth a trial.
func (s *Search) near(low, high float64) bool {
	return high/low-1 <= s.o.Width || s.o.Whole && math.Floor(high)-math.Floor(low) <= 1
}

// shares of the posterior at which trials are made, in turns.
var shares = []float64{0.5, 0.35, 0.65}

// likely is where the capacity probably lies.
func (s *Search) likely() float64 { return s.quantile(shares[s.next%len(shares)]) }

// Further is the load of one more trial of a search that has found a capacity; false: it has not.
func (s *Search) Further() (load float64, found bool) { return s.likely(), s.answer == Found }

// Saw takes in what a trial at a load told. Once a capacity is found it says no more than how large it is.
func (s *Search) Saw(load float64, outcome Outcome) {
	if s.answer == Found && (outcome == Good || outcome == Bad) {
		s.next++
		s.update(load, outcome)
	}
	if s.answer != "" {
		return
	}
	s.trials++
	if outcome == Invalid || outcome == NoData {
		s.sawNothing(load, outcome)
		return
	}
	s.invalid = 0
	if outcome == Good {
		s.held = max(s.held, load)
	} else {
		s.lowestBad = min(s.lowestBad, load)
	}
	s.update(load, outcome)
	if s.confirming {
		rounding := 0.01 * s.confirmLoad
		if s.o.Whole {
			rounding = max(rounding, 0.5)
		}
		if math.Abs(load-s.confirmLoad) <= rounding { // others were tried for another width
			s.confirm(outcome)
		}
		return
	}
	if outcome == Good {
		s.good++
	} else {
		s.bad++
	}
	switch {
	case s.bad == 0 && load >= s.o.To:
		s.answer = AboveRange
		return
	case s.bad == 0 && s.near(s.held, s.ceiling):
		s.answer = GeneratorFirst
		return
	case s.bad == 0 && s.trials >= s.o.Trials:
		s.answer = Unfinished
		return
	case s.good == 0 && s.bad >= 2 && load <= s.o.Least*(1+gridStep):
		s.answer = BelowRange
		return
	}
	if s.bad > 0 {
		s.next++
	}
	low, high := s.interval()
	narrow := s.near(low, high)
	switch {
	case s.bad > 0 && (narrow && s.began() || s.trials >= s.o.Trials):
		switch {
		case s.good == 0 && s.bad >= 2 && low <= s.o.Least*(1+2*gridStep):
			s.answer = BelowRange
			return
		case !narrow && high/low-1 > mostWide*s.o.Width:
			s.answer = Unfinished
			return
		}
		s.confirming, s.confirmLoad = true, low
		if high >= s.o.To*(1-2*gridStep) && !s.endFailed { // it may lie above: then the end of the range holds
			s.confirmLoad = s.o.To
		}
	case outcome == Good && s.stuck():
		s.tryAbove()
	}
}

// confirm counts the trials at the lower end.
func (s *Search) confirm(outcome Outcome) {
	s.confirms++
	if outcome == Good {
		s.confirmGood++
	}
	switch {
	case s.confirmGood == confirmed && s.confirmLoad == s.o.To && !s.endFailed:
		s.answer = AboveRange
	case s.confirmGood == confirmed:
		s.answer = Found
	case s.confirms-s.confirmGood > confirmOf-confirmed && s.confirmLoad == s.o.To: // it lies in the range: the search goes on
		s.confirming, s.endFailed, s.confirms, s.confirmGood = false, true, 0, 0
	case s.confirms-s.confirmGood > confirmOf-confirmed:
		s.answer = Unconfirmed
	}
}

// Searching reports whether the search has no answer yet.
func (s *Search) Searching() bool { return s.answer == "" }

// Estimate is what is known so far.
func (s *Search) Estimate() Estimate {
	e := Estimate{
		Answer: s.answer, Median: s.quantile(0.5), Held: s.held, Trials: s.trials,
		ConfirmLoad: s.confirmLoad, ConfirmGood: s.confirmGood, Confirms: s.confirms,
	}
	if e.Answer == "" {
		e.Answer = Unfinished
	}
	e.Low, e.High = s.interval()
	return e
}

// update weighs each capacity and spread by how probable they make the outcome.
func (s *Search) update(load float64, outcome Outcome) {
	x := math.Log(load)
	for i, c := range s.logs {
		for j, spread := range spreads() {
			bad := lapse/2 + (1-lapse)*distuv.UnitNormal.CDF((x-c)/spread)
			if outcome == Bad {
				s.weight[i][j] *= bad
			} else {
				s.weight[i][j] *= 1 - bad
			}
		}
	}
	s.normalise()
}

func (s *Search) normalise() {
	total := 0.0
	for _, row := range s.weight {
		for _, w := range row {
			total += w
		}
	}
	for _, row := range s.weight {
		for j := range row {
			row[j] /= total
		}
	}
}

func (s *Search) interval() (low, high float64) {
	return s.quantile((1 - confidence) / 2), s.quantile((1 + confidence) / 2)
}

// quantile is the capacity below which the posterior puts this share.
func (s *Search) quantile(share float64) float64 {
	sum := 0.0
	for i, row := range s.weight {
		for _, w := range row {
			sum += w
		}
		if sum >= share {
			return math.Exp(s.logs[i])
		}
	}
	return s.o.To
}
