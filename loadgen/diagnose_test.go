package loadgen

import (
	"testing"
	"time"
)

func TestTimesOfADiagnosis(t *testing.T) {
	first := time.Date(2026, 11, 21, 23, 50, 0, 300e6, time.UTC)
	for text, want := range map[string][2]string{
		"23:50:00,23:51:00": {"2026-11-21T23:50:00Z", "2026-11-21T23:51:00Z"},
		"23:59:00,00:01:00": {"2026-11-21T23:59:00Z", "2026-11-22T00:01:00Z"},
		"10s,1m":            {"2026-11-21T23:50:10Z", "2026-11-21T23:51:00Z"},
		"2026-11-21T23:55:00Z,2026-11-21T23:56:00Z": {"2026-11-21T23:55:00Z", "2026-11-21T23:56:00Z"},
	} {
		s, err := parseSpan(text, first)
		if err != nil || s.From.Format(time.RFC3339) != want[0] || s.To.Format(time.RFC3339) != want[1] {
			t.Errorf("%s: %s to %s: %v", text, s.From, s.To, err)
		}
	}
	now := time.Now().UTC()
	s, err := parseSpan(now.Add(-time.Minute).Format(time.TimeOnly)+","+now.Format(time.TimeOnly), time.Time{})
	if err != nil || now.Sub(s.To) > time.Second || now.Sub(s.From) > 61*time.Second {
		t.Errorf("the last minute is %s to %s: %v", s.From, s.To, err)
	}
	for _, text := range []string{"", "10s", "1m,10s", "25:00:00,26:00:00", "noon,night"} {
		if s, err := parseSpan(text, first); err == nil {
			t.Errorf("%q is taken for %s to %s", text, s.From, s.To)
		}
	}
}
