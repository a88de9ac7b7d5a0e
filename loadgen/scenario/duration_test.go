package scenario

import (
	"strings"
	"testing"
	"time"
)

func TestDurationsAreStrict(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"0": 0, "0s": 0, "30s": 30 * time.Second, "1.5s": 1500 * time.Millisecond, ".5s": 500 * time.Millisecond,
		"1h30m": 90 * time.Minute, "1m0.5s": time.Minute + 500*time.Millisecond, "1.5h30m": 2 * time.Hour, "250us": 250 * time.Microsecond, "250µs": 250 * time.Microsecond,
	} {
		var d Duration
		if err := d.UnmarshalText([]byte(text)); err != nil || d.D() != want {
			t.Errorf("%s: %v, %v, want %v", text, d, err, want)
		}
		var again Duration
		if written, _ := d.MarshalText(); again.UnmarshalText(written) != nil || again != d {
			t.Errorf("%s is written as %s, which reads as %v", text, written, again)
		}
	}
	for text, hint := range map[string]string{
		"2s.20s": "write 2.2s", "1s1s": "write 2s", "30m1h": "write 1h30m", "+5s": "write 5s", "5.s": "write 5s", "1m.5s": "write 1m0.5s",
		"1e3ms": "write 1s", "1e3s": "write 16m40s", "1e3": "write 1000s, 1000ms or 1000m", "30": "write 30s, 30ms or 30m",
		"NaN": "write it as 30s", "-1s": "0s or more", "5 s": "write 5s", "2days": "at most 24h", "99999999h": "at most 24h", "1e99s": "write it as 30s",
	} {
		var d Duration
		err := d.UnmarshalText([]byte(text))
		if err == nil || !strings.Contains(err.Error(), "; ") || !strings.Contains(err.Error(), hint) {
			t.Errorf("%s: %v, %v, want an error with %q", text, d, err, hint)
		}
	}
}

func TestSpreadsAreStrict(t *testing.T) {
	for text, hint := range map[string]string{
		"2s.20s": "write 2s..20s", "2s...20s": "write 2s..20s", "2s-20s": "write 2s..20s", "2s to 20s": "write 2s..20s", "2s – 20s": "write 2s..20s",
		"1ms...5s": "write 1ms..5s", "20s..2s": "MEDIAN..P99", "20s.2s": "write 20.2s", "0s..2s": "MEDIAN..P99", "2..20s": "write 2s, 2ms or 2m", "2s..": "write it as 30s",
	} {
		var s Spread
		if err := s.UnmarshalText([]byte(text)); err == nil || !strings.Contains(err.Error(), hint) {
			t.Errorf("%s: %v, %v, want an error with %q", text, s, err, hint)
		}
	}
	var s Spread
	if err := s.UnmarshalText([]byte("1m..1h30m")); err != nil || s.Median != time.Minute || s.P99 != 90*time.Minute {
		t.Errorf("%v, %v", s, err)
	}
}

func TestBoundsOfTimeAreStrict(t *testing.T) {
	for text, hint := range map[string]string{
		"1e3ms": "write 1s", "2s.20s": "write 2.2s", "1e-3s": "write 1ms", "500 ms": "write 500ms", "1e3foo": `unknown unit "foo"`,
	} {
		var b Bound
		if err := b.UnmarshalText([]byte(text)); err == nil || !strings.Contains(err.Error(), hint) {
			t.Errorf("%s: %v, %v, want an error with %q", text, b, err, hint)
		}
	}
}
