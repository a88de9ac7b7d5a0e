package digits

import (
	"math"
	"strings"
	"testing"
)

func TestFormat(t *testing.T) {
	for _, c := range []struct {
		v    float64
		n    int
		want string
	}{
		{0, 3, "0"}, {math.Copysign(0, -1), 3, "0"}, {1, 3, "1"}, {1.2345, 3, "1.23"}, {12.345, 3, "12.3"}, {999.9, 3, "1000"}, {1023.5, 3, "1024"},
		{123456.7, 4, "123457"}, {-12.345, 3, "-12.3"}, {0.00012345, 3, "0.000123"}, {-1e-15, 3, "0"}, {math.Inf(1), 3, "+Inf"},
	} {
		if got := Format(c.v, c.n); got != c.want {
			t.Errorf("%v with %d digits: %q, want %q", c.v, c.n, got, c.want)
		}
	}
	for e := -11; e < 20; e++ {
		if got := Format(9.999*math.Pow(10, float64(e)), 3); strings.ContainsAny(got, "e-") {
			t.Errorf("1e%d has an exponent: %s", e, got)
		}
	}
}

// A change that rounds to zero has no sign.
func TestChange(t *testing.T) {
	for v, want := range map[float64]string{0: "0%", 0.0004: "0%", -0.0004: "0%", 0.0006: "+0.1%", -0.039: "-3.9%", 1: "+100.0%"} {
		if got := Change(v); got != want {
			t.Errorf("%v is %q, want %q", v, got, want)
		}
	}
}
