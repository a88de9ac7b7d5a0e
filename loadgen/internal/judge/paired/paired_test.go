package paired_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stormglass/stormglass/loadgen/internal/judge/paired"
	"github.com/stormglass/stormglass/loadgen/result"
)

// seed is the seed of all random numbers in these tests.
const seed = 1

// sequence judges as a comparison does: at each look, until there is an answer.
func sequence(p result.Plan, d []float64) paired.Judged {
	var j paired.Judged
	for _, l := range p.Looks {
		if j = paired.Judge(p, []paired.Figure{{D: d[:l.Pairs]}})[0]; j.Answer != result.CouldNotTell {
			break
		}
	}
	return j
}

// TestErrorRates simulates the error rates in docs/reference/comparing.md, with as many trials as they need. The bounds
// are the rates of an independent simulation.
func TestErrorRates(t *testing.T) {
	t.Logf("seed %d", seed)
	const trials = 4000
	p := paired.Default()
	for _, c := range []struct{ spread, alarms, power float64 }{ // in percent
		{0.03, 0.05, 99.5}, {0.04, 0.15, 98}, {0.05, 0.25, 96}, {0.06, 0.4, 92.5}, {0.08, 0.8, 76},
	} {
		rng := rand.New(rand.NewPCG(seed, uint64(c.spread*100)))
		rate := func(change float64, answer result.Answer) float64 {
			n := 0
			for range trials {
				d := make([]float64, p.Most())
				for i := range d {
					d[i] = math.Log1p(change) + c.spread*rng.NormFloat64()
				}
				if sequence(p, d).Answer == answer {
					n++
				}
			}
			return 100 * float64(n) / trials
		}
		alarms, power, better := rate(0, result.Regressed), rate(0.10, result.Regressed), rate(0, result.Improved)
		t.Logf("spread %v: alarms %.3f%%, found at +10%% %.1f%%", c.spread, alarms, power)
		if alarms > c.alarms || better > c.alarms || power < c.power {
			t.Errorf("spread %v: alarms %.3f%% and %.3f%%, want at most %v%%; found %.1f%%, want %v%%", c.spread, alarms, better, c.alarms, power, c.power)
		}
	}
}

func TestAnswers(t *testing.T) {
	p := paired.Default()
	around := func(change, spread float64, n int) (d []float64) {
		for i := range n { // two above, two below
			d = append(d, math.Log1p(change)+spread*float64(1-i%2*2))
		}
		return d
	}
	for name, c := range map[string]struct {
		d     []float64
		want  result.Answer
		pairs int
	}{
		"no pairs":                  {nil, result.CouldNotTell, 0},
		"one pair":                  {[]float64{1}, result.CouldNotTell, 1},
		"too few":                   {around(0.5, 0.01, 5), result.CouldNotTell, 5},
		"worse":                     {around(0.10, 0.02, 6), result.Regressed, 6},
		"worse, a pair past a look": {around(0.10, 0.02, 8), result.Regressed, 6},
		"better":                    {around(-0.10, 0.02, 6), result.Improved, 6},
		"the same":                  {around(0, 0.02, 6), result.NotRegressed, 6},
		"a little worse, surely":    {around(0.03, 0.005, 12), result.NotRegressed, 12},
		"noise":                     {around(0.05, 0.20, 12), result.CouldNotTell, 12},
		"counts that are equal":     {around(0, 0, 6), result.NotRegressed, 6},
		"counts that are worse":     {around(0.2, 0, 6), result.Regressed, 6},
		"counts a little worse":     {around(0.01, 0, 6), result.NotRegressed, 6},
		"counts that are better":    {around(-0.2, 0, 6), result.Improved, 6},
	} {
		t.Run(name, func(t *testing.T) {
			j := paired.Judge(p, []paired.Figure{{D: c.d}})[0]
			if j.Answer != c.want || j.Pairs != c.pairs {
				t.Errorf("%s after %d pairs, want %s after %d: %+v", j.Answer, j.Pairs, c.want, c.pairs, j)
			}
		})
	}
}

// TestCriticalValues compares critical values with the published table of Student's t.
func TestCriticalValues(t *testing.T) {
	p := paired.Default()
	for i, want := range []float64{4.57, 3.71, 3.23} {
		d := make([]float64, p.Looks[i].Pairs)
		for k := range d {
			d[k] = float64(k % 2)
		}
		if got := paired.Judge(p, []paired.Figure{{D: d}})[0].Critical; math.Abs(got-want) > 0.01 {
			t.Errorf("after %d pairs: %.3f, want %v", p.Looks[i].Pairs, got, want)
		}
	}
}

// TestHolm: if there are more figures than alpha allows, each needs more evidence, and the strongest one the most.
func TestHolm(t *testing.T) {
	p := paired.Default()
	d := []float64{0.06, 0.14, 0.06, 0.14, 0.06, 0.14}
	alone := paired.Judge(p, []paired.Figure{{D: d}})[0]
	strong := []float64{0.09, 0.11, 0.09, 0.11, 0.09, 0.11}
	many := []paired.Figure{{D: d}, {D: strong}}
	for range 8 {
		many = append(many, paired.Figure{D: []float64{0.1, -0.1, 0.1, -0.1, 0.1, -0.1}})
	}
	judged := paired.Judge(p, many)
	if judged[1].Critical <= judged[0].Critical || judged[0].Critical <= alone.Critical {
		t.Errorf("critical values: %.2f of the strongest of ten, %.2f of the next, %.2f alone", judged[1].Critical, judged[0].Critical, alone.Critical)
	}
	if five := paired.Judge(p, many[:5]); five[0].Critical != alone.Critical {
		t.Errorf("five figures share alpha: %.2f, alone %.2f", five[0].Critical, alone.Critical)
	}
}

func TestCheck(t *testing.T) {
	if err := paired.Check(paired.Default()); err != nil {
		t.Fatal(err)
	}
	wide := paired.Default()
	wide.Change = 0.1
	if err := paired.Check(wide); err == nil || err.Error() != "--margin 10%: must be over --change, which is 10%" {
		t.Errorf("a margin that is not over the change: %v", err)
	}
	for name, change := range map[string]func(*result.Plan){
		"no looks":          func(p *result.Plan) { p.Looks = nil },
		"two pairs":         func(p *result.Plan) { p.Looks[0].Pairs = 2 },
		"falling":           func(p *result.Plan) { p.Looks[1].Pairs = 6 },
		"alpha of a half":   func(p *result.Plan) { p.Looks[1].Alpha = 0.5 },
		"margin in change":  func(p *result.Plan) { p.Margin = 0.05 },
		"no change":         func(p *result.Plan) { p.Change = 0 },
		"sure":              func(p *result.Plan) { p.Confidence = 1 },
		"no figure allowed": func(p *result.Plan) { p.Figures = 0 },
		"no number":         func(p *result.Plan) { p.Change = math.NaN() },
	} {
		p := paired.Default()
		change(&p)
		if paired.Check(p) == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

// TestDifferences: a figure that is 0 in A has no ratio, and is judged by B minus A.
func TestDifferences(t *testing.T) {
	for name, c := range map[string]struct {
		figure paired.Figure
		want   result.Answer
	}{
		"from nothing to nine":      {paired.Figure{D: []float64{9, 9.1, 8.9, 9, 9, 9.2}, Differences: true}, result.Regressed},
		"from nine to nothing":      {paired.Figure{D: []float64{-9, -9.1, -8.9, -9, -9, -9.2}, Differences: true, Level: 9}, result.Improved},
		"now and then one":          {paired.Figure{D: []float64{1, 0, 0, 1, 0, 0}, Differences: true}, result.CouldNotTell},
		"one of very many, at once": {paired.Figure{D: []float64{1, 1, 1, 1, 1, 2}, Differences: true, Level: 1000}, result.NotRegressed},
	} {
		if got := paired.Judge(paired.Default(), []paired.Figure{c.figure})[0]; got.Answer != c.want {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// TestBoundsEndWhereNothingIsLeft: a figure cannot fall by more than 100% of A.
func TestBoundsEndWhereNothingIsLeft(t *testing.T) {
	for name, c := range map[string]struct {
		figure    paired.Figure
		low, high float64
	}{
		"nothing in any B":                  {paired.Figure{D: []float64{-1, -1, -1, -1, -1, -1}, Differences: true, Level: 1, Gone: -1}, -1, -1},
		"nothing in most":                   {paired.Figure{D: []float64{-1, -1, -1, -1, -1, -0.9}, Differences: true, Level: 1, Gone: -1}, -1, -0.95},
		"nothing in any B, better higher":   {paired.Figure{D: []float64{1, 1, 1, 1, 1, 1}, Differences: true, Level: 1, Gone: 1}, 1, 1},
		"nothing in most, better higher":    {paired.Figure{D: []float64{1, 1, 1, 1, 1, 0.9}, Differences: true, Level: 1, Gone: 1}, 0.95, 1},
		"differences with an uneven A":      {paired.Figure{D: []float64{-9, -9.1, -8.9, -9, -9, 0}, Differences: true, Level: 7.5, Gone: -1}, -1, -0.6},
		"a figure that may fall below zero": {paired.Figure{D: []float64{-9, -9.1, -8.9, -9, -9, 0}, Differences: true, Level: 7.5}, -1.4, -0.6},
	} {
		j := paired.Judge(paired.Default(), []paired.Figure{c.figure})[0]
		if math.Abs(j.Low-c.low) > 0.05 || math.Abs(j.High-c.high) > 0.05 || c.figure.Gone < 0 && j.Low < -1 || c.figure.Gone > 0 && j.High > 1 {
			t.Errorf("%s: %.3f to %.3f, want %.2f to %.2f", name, j.Low, j.High, c.low, c.high)
		}
	}
}

// TestSpreadOfDifferencesIsAShare: the spread of differences is a share, like the spread of ratios.
func TestSpreadOfDifferencesIsAShare(t *testing.T) {
	d := []float64{-900, -910, -890, -900, -900, -920}
	j := paired.Judge(paired.Default(), []paired.Figure{{D: d, Differences: true, Level: 1000}})[0]
	if j.Spread < 0.009 || j.Spread > 0.012 {
		t.Errorf("%v", j.Spread)
	}
}
