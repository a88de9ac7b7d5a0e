// Package capacity searches for the highest load that a control plane can sustain. Each trial is a run with one load. A
// trial is good if all its gates pass. The type Search chooses the loads and evaluates the outcomes. It accesses
// neither control planes nor clocks.
//
// The load grows until a trial is bad; a rate doubles each time. Then the search estimates a psychometric curve: a
// trial is bad with probability lapse/2 + (1-lapse) Φ(ln(load/capacity)/spread). lapse is the fraction of random
// outcomes. spread is the relative width of the band of loads in which trials may pass or fail. Each trial updates the
// posterior distribution of capacity and spread, a grid of weights. Trials use the 50, 35 and 65% quantiles of the
// capacity in turn, until the 90% interval of the capacity is narrow. Then further trials confirm the result.
package capacity

import (
	"fmt"
	"math"

	"gonum.org/v1/gonum/stat/distuv"
)

// Options configure a search.
type Options struct {
	// From is the first load to try. Least and To bound the loads of the search.
	Least, From, To float64
	// Growth is the factor by which the load grows until a trial fails. 2 doubles the load.
	Growth float64
	// Width is the width of the interval at which the search ends: the upper end divided by the lower end, minus 1.
	Width float64
	// Trials is the maximum number of trials, excluding the trials that confirm the result.
	Trials int
	// Whole reports whether loads are whole numbers. If so, the search also ends when no whole number lies inside the
	// interval.
	Whole bool
}

// Default returns the options of a search that starts at the load least, doubles the load, and never exceeds the load
// to.
func Default(least, to float64) Options {
	return Options{Least: least, From: least, To: to, Growth: 2, Width: 0.15, Trials: 40}
}

// Check validates the options.
func (o Options) Check() error {
	switch {
	case !(o.Least > 0 && o.Least <= o.From && o.From < o.To) || math.IsInf(o.To, 0):
		return fmt.Errorf("the range of loads is invalid: lowest load %v, first load %v, highest load %v", o.Least, o.From, o.To)
	case o.Growth < 1.05 || o.Growth > 10:
		return fmt.Errorf("growth %v: must be from 1.05 to 10", o.Growth)
	}
	return o.checkEnd()
}

// checkEnd validates the options that end a search, and names their flags.
func (o Options) checkEnd() error {
	switch {
	case !(o.Width >= minWidth && o.Width <= maxWidth):
		return fmt.Errorf("--width %v%%: must be from %v%% to %v%%", 100*o.Width, 100*minWidth, 100*maxWidth)
	case o.Trials < minTrials:
		return fmt.Errorf("--trials %d: must be at least %d", o.Trials, minTrials)
	}
	return nil
}

const (
	minWidth, maxWidth = 0.01, 1
	minTrials          = 3

	lapse      = 0.02 // assumed fraction of trials with a random outcome
	confidence = 0.90 // probability that the interval contains the capacity
	gridStep   = 0.005
	confirmOf  = 5 // maximum number of confirming trials
	confirmed  = 3 // number of confirming trials that must be good
	// maxWide limits the width of the interval if a search has used all its trials. It is a multiple of the requested
	// width. If the interval is wider, the search is unfinished.
	maxWide = 2
	// invalidInRow is the number of invalid trials in a row after which the generator counts as the limit. A single
	// invalid trial does not count, because other processes may have caused it.
	invalidInRow = 2
)

// spreads returns the possible values of the spread, the relative width of the band of loads in which a trial may pass
// or fail.
func spreads() []float64 { return []float64{0.02, 0.04, 0.08, 0.16} }

// Outcome is the result of a trial, as in capacity.json.
type Outcome string

// The outcomes of a trial. Invalid means that the generator was the limit. NoData means that the trial could not be
// judged. Neither says anything about the capacity.
const (
	Good    Outcome = "good"
	Bad     Outcome = "bad"
	Invalid Outcome = "invalid"
	NoData  Outcome = "no data"
)

// counts reports whether the search can use the outcome to estimate the capacity.
func (o Outcome) counts() bool { return o == Good || o == Bad }

// Answer is the result of a search.
type Answer string

// The possible answers of a search.
const (
	Found          Answer = "found"
	AboveRange     Answer = "above the range"
	BelowRange     Answer = "below the range"
	GeneratorFirst Answer = "the generator ended first"
	Unjudged       Answer = "trials could not be judged"
	Unconfirmed    Answer = "unconfirmed" // the confirming trials failed
	Unfinished     Answer = "unfinished"
)

// Estimate is the current result of a search.
type Estimate struct {
	Answer            Answer
	Low, Median, High float64 // median and bounds of the 90% interval of the capacity
	Held              float64 // the highest load of a good trial; 0 without good trials
	Trials            int
	// ConfirmLoad is the load of the confirming trials: the lower end of the interval once the interval is narrow, or
	// the upper end of the range if the capacity may lie above the range. Confirms is the number of confirming trials
	// so far, and ConfirmGood is the number of good ones.
	ConfirmLoad           float64
	ConfirmGood, Confirms int
}

// Search is a search in progress.
type Search struct {
	o      Options
	logs   []float64   // natural logarithms of the possible capacities
	weight [][]float64 // posterior probability, indexed by capacity and spread

	trials, bad, good     int
	unusable              Outcome // outcome of the latest trials without a result: Invalid or NoData
	invalid               int     // number of trials in a row with that outcome
	ceiling               float64 // the lowest load at which the generator was the limit twice in a row
	forgotten             bool    // the ceiling was removed once (see tryAbove)
	lowestBad, held       float64
	next                  int // shares[next%len(shares)] is the next quantile to try
	confirming            bool
	endFailed             bool // confirming trials at the upper end of the range were bad
	confirmLoad           float64
	confirmGood, confirms int
	answer                Answer
}

// New returns a new search.
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

// Next returns the next load to try. more is false if the search has ended.
func (s *Search) Next() (load float64, more bool) {
	switch {
	case s.answer != "":
		return 0, false
	case s.confirming:
		return s.confirmLoad, true
	case s.bad == 0 && !math.IsInf(s.ceiling, 1): // try between held and the generator's limit
		return math.Sqrt(s.held * s.ceiling), true
	case !s.began(): // do not raise the load until a trial is good
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

// began reports whether a trial was good or two trials were bad. Until then, the search stays at Options.From.
func (s *Search) began() bool { return s.good > 0 || s.bad > 1 }

// grown returns the load `held` multiplied by Options.Growth. If loads are whole numbers, it adds at least 1.
func (s *Search) grown(held float64) float64 {
	if s.o.Whole {
		return max(held+1, math.Round(held*s.o.Growth))
	}
	return held * s.o.Growth
}

// near reports whether the loads low and high are so close that no trial between them is needed.
func (s *Search) near(low, high float64) bool {
	return high/low-1 <= s.o.Width || s.o.Whole && math.Floor(high)-math.Floor(low) <= 1
}

// shares are the quantiles of the capacity that the search tries in turn.
var shares = []float64{0.5, 0.35, 0.65}

// likely returns the capacity at the current quantile (see shares) of the posterior distribution.
func (s *Search) likely() float64 { return s.quantile(shares[s.next%len(shares)]) }

// Further returns another load to try after the search has found a capacity. found is false if the search has not found
// one.
func (s *Search) Further() (load float64, found bool) { return s.likely(), s.answer == Found }

// Saw records the outcome of a trial. After the search has found a capacity, further trials only refine the estimate.
func (s *Search) Saw(load float64, outcome Outcome) {
	if s.answer == Found && outcome.counts() {
		s.next++
		s.update(load, outcome)
	}
	if s.answer != "" {
		return
	}
	s.trials++
	if !outcome.counts() {
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
		if math.Abs(load-s.confirmLoad) <= rounding { // trials with other loads confirmed an earlier search with another width
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
		case !narrow && high/low-1 > maxWide*s.o.Width:
			s.answer = Unfinished
			return
		}
		s.confirming, s.confirmLoad = true, low
		if high >= s.o.To*(1-2*gridStep) && !s.endFailed { // the capacity may lie above the range: confirm the upper end of the range
			s.confirmLoad = s.o.To
		}
	case outcome == Good && s.stuck():
		s.tryAbove()
	}
}

// confirm records the outcome of a confirming trial.
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
	case s.confirms-s.confirmGood > confirmOf-confirmed && s.confirmLoad == s.o.To: // the capacity lies in the range, so the search continues
		s.confirming, s.endFailed, s.confirms, s.confirmGood = false, true, 0, 0
	case s.confirms-s.confirmGood > confirmOf-confirmed:
		s.answer = Unconfirmed
	}
}

// Searching reports whether the search has no answer yet.
func (s *Search) Searching() bool { return s.answer == "" }

// Estimate returns the current estimate.
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

// update updates the posterior distribution after a trial. It multiplies the weight of each pair of capacity and spread
// by the probability that this pair gives to the outcome.
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

// quantile returns the capacity at a quantile (0 to 1) of the posterior distribution.
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
