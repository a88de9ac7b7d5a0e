package alerting

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// The reach of an alert contains the longest evaluation interval and the smallest offset of everything that the alert
// reads.
func TestReach(t *testing.T) {
	s := mustParse(t, `
groups:
  - name: records
    interval: 30s
    query_offset: 10s
    rules:
      - {record: 'a:b', expr: 'rate(x_total[5m] offset 1m)'}
      - {record: 'itself', expr: 'itself + x_total'}
  - name: alerts
    interval: 15s
    rules:
      - {alert: Plain, expr: 'x_total > 0', for: 1m}
      - {alert: OfRecord, expr: 'a:b > 0'}
      - {alert: Compared, expr: 'rate(x_total[5m]) > 2 * rate(x_total[5m] offset 1h)'}
      - {alert: Inner, expr: 'max_over_time((x_total offset 1m)[5m:] offset 2m) > 0'}
      - {alert: Always, expr: 'vector(1)'}
      - {alert: Ahead, expr: 'x_total offset -1m > x_total offset 5m'}
      - {alert: Round, expr: 'itself > 0'}
  - name: unsaid
    rules:
      - {alert: Plain, expr: 'x_total > 1', for: 5m}
      - {alert: Seldom, expr: 'x_total > 1'}
`)
	for alert, want := range map[string]Reach{
		"Plain":    {Every: time.Minute, For: 5 * time.Minute},
		"Seldom":   {Every: time.Minute},
		"OfRecord": {Every: 30 * time.Second, Back: 70 * time.Second},
		"Compared": {Every: 15 * time.Second},
		"Inner":    {Every: 15 * time.Second, Back: 3 * time.Minute},
		"Always":   {Every: 15 * time.Second},
		"Ahead":    {Every: 15 * time.Second},
		"Round":    {Every: 30 * time.Second, Back: 10 * time.Second},
	} {
		if got := s.Reach(alert); got != want {
			t.Errorf("%s: %+v, want %+v", alert, got, want)
		}
	}
}

// The largest range that an alert reads determines how far it looks back, and the smallest one how
// little data it needs.
func TestHindsight(t *testing.T) {
	s := mustParse(t, `
groups:
  - name: records
    interval: 30s
    query_offset: 10s
    rules:
      - {record: 'a:b', expr: 'rate(x_total[5m] offset 1m)'}
      - {record: 'itself', expr: 'itself + x_total'}
  - name: alerts
    interval: 15s
    rules:
      - {alert: Plain, expr: 'x_total > 0', for: 1m}
      - {alert: OfRecord, expr: 'a:b > 0', for: 1m}
      - {alert: Compared, expr: 'rate(x_total[5m]) > 2 * rate(x_total[2m] offset 1h)'}
      - {alert: Inner, expr: 'max_over_time(rate(x_total[1m] offset 1m)[5m:] offset 2m) > 0'}
      - {alert: Always, expr: 'vector(1)'}
      - {alert: Round, expr: 'itself > 0'}
`)
	for alert, want := range map[string]Hindsight{
		"Plain":    {For: time.Minute},
		"OfRecord": {For: time.Minute, Longest: 6*time.Minute + 10*time.Second, Shortest: 5 * time.Minute},
		"Compared": {Longest: time.Hour + 2*time.Minute, Shortest: 2 * time.Minute},
		"Inner":    {Longest: 9 * time.Minute, Shortest: time.Minute},
		"Always":   {},
		"Round":    {Longest: 10 * time.Second},
	} {
		if got := s.Hindsight(alert); got != want {
			t.Errorf("%s: %+v, want %+v", alert, got, want)
		}
	}
}

// Each record of the chain reads the one before it twice, so the last one reads the first one in 2^60 ways.
func TestReachThroughAChainOfRecords(t *testing.T) {
	var rules strings.Builder
	rules.WriteString("groups: [{name: g, rules: [{record: 'r0:x', expr: 'rate(x_total[5m] offset 1m)'}, {alert: Last, expr: 'r60:x > 0'}")
	for n := range 60 {
		fmt.Fprintf(&rules, ", {record: 'r%d:x', expr: 'r%d:x + r%[2]d:x'}", n+1, n)
	}
	s := mustParse(t, rules.String()+"]}]")
	if got, want := s.Reach("Last"), (Reach{Every: time.Minute, Back: time.Minute}); got != want {
		t.Errorf("reach %+v, want %+v", got, want)
	}
	if got, want := s.Hindsight("Last"), (Hindsight{Longest: 6 * time.Minute, Shortest: 5 * time.Minute}); got != want {
		t.Errorf("hindsight %+v, want %+v", got, want)
	}
}

// Evaluations are at 0, 15, 30 ... seconds.
func TestReachInTime(t *testing.T) {
	first := time.UnixMilli(1_800_000_000_000)
	at := func(s int) time.Time { return first.Add(time.Duration(s) * time.Second) }
	r := Reach{Every: 15 * time.Second, For: 20 * time.Second, Back: 10 * time.Second}
	for _, c := range []struct {
		start, end int
		looks      bool
	}{{1, 14, false}, {1, 15, true}, {15, 15, true}, {0, 5, true}, {-9, -1, false}, {-9, 0, true}} {
		if got := r.Looks(first, at(c.start), at(c.end)); got != c.looks {
			t.Errorf("from %d s to %d s it looks: %v", c.start, c.end, got)
		}
	}
	// The alert sees the first scrape at 15 s, and its condition has held for 20 s at 45 s.
	if r.Fires(first, at(44)) || !r.Fires(first, at(45)) {
		t.Errorf("fires by 44 s: %v, want false; by 45 s: %v, want true", r.Fires(first, at(44)), r.Fires(first, at(45)))
	}
}
