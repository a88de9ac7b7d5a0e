package report

import (
	"testing"

	"github.com/stormglass/stormglass/loadgen/scenario"
)

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
	// A phase whose condition was not met in 20 s has nothing to spare.
	g := gate("g", "o", "fail", ptr(20), "<=", 60, scenario.Seconds, "p")
	g.AtLeast = true
	if v, by := gateValue(g), margin(g); v != "≥ 20 s" || by != "" {
		t.Errorf("what never came reads %q, %q", v, by)
	}
}
