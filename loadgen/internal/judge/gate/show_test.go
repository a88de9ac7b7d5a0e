package gate

import (
	"testing"

	"github.com/stormglass/stormglass/loadgen/scenario"
)

// Values have three digits, no exponents, and no more precision than was measured.
func TestShow(t *testing.T) {
	for _, c := range []struct {
		unit scenario.Unit
		v    float64
		want string
	}{
		{scenario.Seconds, 0, "0 s"}, {scenario.Seconds, 1.2345, "1.23 s"}, {scenario.Seconds, 0.0123, "12.3 ms"}, {scenario.Seconds, 130, "2m10s"},
		{scenario.Seconds, 2e-7, "under 1 µs"}, {scenario.Seconds, -2e-7, "under 1 µs"}, {scenario.Seconds, 0.9999, "1000 ms"},
		{scenario.Size, 999.9e6, "1000 MB"}, {scenario.Count, 999.9, "1000"}, {scenario.Count, 1234567, "1234567"}, {scenario.Ratio, 0.0000123, "0.00123%"},
		{scenario.Count, 0.00001, "0.00001"}, {scenario.PerSec, 12.5, "12.5/s"}, {scenario.Count, 12.5, "12.5"},
	} {
		if got := show(c.unit, c.v); got != c.want {
			t.Errorf("%v %q: %q, want %q", c.v, c.unit, got, c.want)
		}
	}
}
