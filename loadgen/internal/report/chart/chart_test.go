package chart

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stormglass/stormglass/loadgen/scenario"
)

var start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func after(s float64) time.Time { return start.Add(time.Duration(s * float64(time.Second))) }

func TestGapsAreGapsAndLonePointsAreDots(t *testing.T) {
	nan := math.NaN()
	s := newScale(0, 4, false, scenario.PerSec)
	line, lone := path([]float64{1, 2, nan, 3, nan, math.NaN(), 4, 4}, s, PlotWidth, plotHeight)
	if m, dots := strings.Count(line, "M"), strings.Count(lone, "h0"); m != 2 || dots != 1 {
		t.Errorf("%s %s: %d strokes and %d dots, want 2 and 1", line, lone, m, dots)
	}
	if strings.Contains(line+lone, "NaN") {
		t.Error("a path contains NaN")
	}
}

func TestSampleKeepsPeaksAndDips(t *testing.T) {
	g := NewGrid(start, start.Add(time.Minute), 10*time.Second)
	points := []Point{{T: after(10), V: 1}, {T: after(11), V: 9}, {T: after(12), V: 3}, {T: after(30), V: math.Inf(1)}, {T: after(40), V: math.NaN()}, {T: after(-100), V: 5}, {T: after(999), V: 5}}
	if high := g.Sample(points, false); high[1] != 9 || !math.IsNaN(high[3]) || !math.IsNaN(high[4]) {
		t.Errorf("peaks: %v", high)
	}
	if low := g.Sample(points, true); low[1] != 1 {
		t.Errorf("dips: %v", low)
	}
}

func TestGridIsBounded(t *testing.T) {
	for _, length := range []time.Duration{0, time.Second, 7 * time.Minute, 10 * time.Hour, 40 * 24 * time.Hour} {
		g := NewGrid(start, start.Add(length), 5*time.Second)
		if g.N < 1 || g.N > MaxPoints || g.End().Before(start.Add(length-g.Step)) {
			t.Errorf("%s: %d points to %s", length, g.N, g.End().Sub(start))
		}
	}
}

func TestScalesHoldTheirValues(t *testing.T) {
	for _, c := range []struct {
		low, high float64
		log       bool
	}{{0, 0, false}, {3, 3, false}, {0, 1e-9, false}, {0, 7e12, false}, {.002, .002, true}, {1e-6, 60, true}, {0, 3, true}, {.0099, 1.0000001, true}} {
		s := newScale(c.low, c.high, c.log, scenario.Seconds)
		if y := s.y(c.high); y < -1e-9 || y > plotHeight || s.High < c.high*(1-1e-9) || math.IsNaN(y) {
			t.Errorf("%+v: %v at %v on %+v", c, c.high, y, s)
		}
		if len(s.Ticks) < 2 || len(s.Ticks) > 7 {
			t.Errorf("%+v: %d ticks", c, len(s.Ticks))
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
		{scenario.Number, math.NaN(), None}, {scenario.Number, math.Inf(1), "+∞"}, {scenario.Seconds, -.002, "-2 ms"},
	} {
		if got := Format(c.unit, c.v); got != c.want {
			t.Errorf("%v %s: %q, want %q", c.v, c.unit, got, c.want)
		}
	}
}
