package report

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stormglass/stormglass/loadgen/scenario"
)

func TestGapsAreGapsAndLonePointsAreDots(t *testing.T) {
	nan := math.NaN()
	s := newScale(0, 4, false, scenario.PerSec)
	line, lone := path([]float64{1, 2, nan, 3, nan, math.NaN(), 4, 4}, s)
	if m, dots := strings.Count(line, "M"), strings.Count(lone, "h0"); m != 2 || dots != 1 {
		t.Errorf("%s %s: %d strokes and %d dots, want 2 and 1", line, lone, m, dots)
	}
	if strings.Contains(line+lone, "NaN") {
		t.Error("NaN in a path")
	}
}

func TestSampleKeepsPeaksAndDips(t *testing.T) {
	g := newGrid(began, began.Add(time.Minute), 10*time.Second)
	points := []Point{{T: at(10), V: 1}, {T: at(11), V: 9}, {T: at(12), V: 3}, {T: at(30), V: math.Inf(1)}, {T: at(40), V: math.NaN()}, {T: at(-100), V: 5}, {T: at(999), V: 5}}
	if high := g.sample(points, false); high[1] != 9 || !math.IsNaN(high[3]) || !math.IsNaN(high[4]) {
		t.Errorf("peaks: %v", high)
	}
	if low := g.sample(points, true); low[1] != 1 {
		t.Errorf("dips: %v", low)
	}
}

func TestGridIsBounded(t *testing.T) {
	for _, length := range []time.Duration{0, time.Second, 7 * time.Minute, 10 * time.Hour, 40 * 24 * time.Hour} {
		g := newGrid(began, began.Add(length), 5*time.Second)
		if g.n < 1 || g.n > maxPoints || g.end().Before(began.Add(length-g.step)) {
			t.Errorf("%s: %d points to %s", length, g.n, g.end().Sub(began))
		}
	}
}

func TestScalesHoldTheirValues(t *testing.T) {
	for _, c := range []struct {
		low, high float64
		log       bool
	}{{0, 0, false}, {3, 3, false}, {0, 1e-9, false}, {0, 7e12, false}, {.002, .002, true}, {1e-6, 60, true}, {0, 3, true}, {.0099, 1.0000001, true}} {
		s := newScale(c.low, c.high, c.log, scenario.Seconds)
		if y := s.y(c.high); y < -1e-9 || y > plotHeight || s.high < c.high*(1-1e-9) || math.IsNaN(y) {
			t.Errorf("%+v: %v at %v on %+v", c, c.high, y, s)
		}
		if len(s.ticks) < 2 || len(s.ticks) > 7 {
			t.Errorf("%+v: %d ticks", c, len(s.ticks))
		}
	}
}

func TestUnitsReadWell(t *testing.T) {
	for _, c := range []struct {
		unit scenario.Unit
		v    float64
		want string
	}{
		{scenario.Seconds, 1.2, "1.2 s"}, {scenario.Seconds, .34, "340 ms"}, {scenario.Seconds, 85e-6, "85 µs"}, {scenario.Seconds, 0, "0 s"},
		{scenario.Seconds, .9996, "1 s"}, {scenario.Seconds, 59.96, "1m"}, {scenario.Seconds, 125, "2m 05s"}, {scenario.Seconds, 3725, "1h 02m"}, {scenario.Seconds, 300, "5m"},
		{scenario.Count, 5000, "5,000"}, {scenario.Count, 1234567, "1,234,567"}, {scenario.Ratio, .0024, "0.24%"}, {scenario.Ratio, 1, "100%"},
		{scenario.Size, 200e6, "200 MB"}, {scenario.Size, 999.7e6, "1 GB"}, {scenario.PerHour, 1, "1/h"}, {scenario.PerSec, 14.94, "14.9/s"},
		{scenario.Number, math.NaN(), none}, {scenario.Number, math.Inf(1), "+∞"}, {scenario.Seconds, -.002, "-2 ms"},
	} {
		if got := format(c.unit, c.v); got != c.want {
			t.Errorf("%v %s: %q, want %q", c.v, c.unit, got, c.want)
		}
	}
}

// A value just past its bound must not read like the bound.
func TestGateTextTellsValueFromBound(t *testing.T) {
	for _, c := range []struct {
		value, bound float64
		op           string
		want, by     string
	}{
		{1.0004, 1, "<=", "1.0004 s", "<0.1% over"}, {1.84, 1, "<=", "1.84 s", "84% over"}, {3.1, 1, "<=", "3.1 s", "3.1× the bound"},
		{.5, 1, "<=", "500 ms", "50% to spare"}, {1, 1, "<=", "1 s", "at the bound"}, {.9, 1, ">=", "900 ms", "10% short"},
		{2, 1, ">=", "2 s", "100% to spare"}, {.2, 0, "<=", "200 ms", "200 ms over"}, {0, 0, "<=", "0 s", ""},
	} {
		g := gate("g", "o", "fail", &c.value, c.op, c.bound, scenario.Seconds, "p")
		if v, by := gateValue(g), margin(g); v != c.want || by != c.by {
			t.Errorf("%v %s %v: %q %q, want %q %q", c.value, c.op, c.bound, v, by, c.want, c.by)
		}
	}
	// A phase that waited 20 s in vain has no time to spare.
	g := gate("g", "o", "fail", ptr(20), "<=", 60, scenario.Seconds, "p")
	g.AtLeast = true
	if v, by := gateValue(g), margin(g); v != "≥ 20 s" || by != "" {
		t.Errorf("what never came reads %q, %q", v, by)
	}
}
