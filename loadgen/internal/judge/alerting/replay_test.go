package alerting

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/labels"

	"github.com/stormglass/stormglass/loadgen/internal/archive"
	"github.com/stormglass/stormglass/loadgen/internal/archivetest"
	"github.com/stormglass/stormglass/loadgen/internal/scrape"
)

const testRules = `
groups:
  - name: records
    interval: 15s
    rules:
      - {record: 'job:slow:ratio', expr: 'sum by (job) (rate(slow_total{job="etcd"}[1m])) / sum by (job) (rate(all_total{job="etcd"}[1m]))'}
  - name: alerts
    interval: 15s
    rules:
      - alert: Slow
        expr: 'job:slow:ratio > 0.5'
        for: 30s
        labels: {severity: warning}
        annotations: {summary: '{{ $value | humanizePercentage }} of {{ $labels.job }} are slow'}
      - alert: Once
        expr: 'increase(slow_total{job="etcd"}[10m]) > 0'
      - alert: Gone
        expr: 'absent(up{job="etcd"})'
        for: 15s
      - alert: Broken
        expr: 'up{job="etcd"} + on (job) group_left up{job="etcd"}'
`

func mustParse(t *testing.T, text string) Ruleset {
	t.Helper()
	s, err := Parse("rules.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// recorded returns 40 scrapes that are 5 s apart. The scrapes from the 9th to the 20th
// count only slow requests.
func recorded(t *testing.T) (*archive.Archive, time.Time) {
	t.Helper()
	l := archivetest.New(t, scrape.Options{Extra: []string{"slow_total", "all_total"}}, "etcd-0", "etcd-1")
	var start time.Time
	for i := range 40 {
		for _, c := range l.Parts {
			c.Add("all_total", 10)
			slow := 0.0
			if i >= 9 && i < 21 {
				slow = 10
			}
			c.Add("slow_total", slow)
		}
		at := l.Boundary(5 * time.Second)
		if i == 0 {
			start = at
		}
	}
	return l.Archive(), start
}

// told returns the alerts' firings, in seconds since the start.
func told(h History) string {
	var b strings.Builder
	since := func(at time.Time) string {
		if at.IsZero() {
			return "-"
		}
		return fmt.Sprint(at.Sub(h.Start).Seconds())
	}
	for _, f := range h.Firings {
		fmt.Fprintf(&b, "%s %s %s %s\n", f.Alert, since(f.Pending), since(f.Fired), since(f.Resolved))
	}
	return b.String()
}

// The share of slow requests exceeds a half once they fill half of the last minute, and
// `for` counts from the first evaluation after that.
func TestReplay(t *testing.T) {
	a, _ := recorded(t)
	h, err := mustParse(t, testRules).Replay(t.Context(), a, Options{})
	if err != nil {
		t.Fatal(err)
	}
	// Scrapes at 45 s to 100 s count slow ones. Of the 11 increases in a minute 4
	// are slow at 60 s, 7 at 75 s, 10 at 105 s, 7 at 120 s and 4 at 135 s.
	want := "Slow 75 105 135\nOnce 45 45 -\nOnce 45 45 -\n"
	if got := told(h); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	if s := h.Of("Slow")[0]; s.Labels["severity"] != "warning" || s.Labels["job"] != "etcd" || s.Summary != "90.91% of etcd are slow" {
		t.Errorf("the alert fired with labels %v and summary %q", s.Labels, s.Summary)
	}
	if err := h.Failed["Broken"]; err == nil || !strings.Contains(err.Error(), "many-to-many") {
		t.Errorf("state of a rule that cannot be evaluated = %v", err)
	}
	if len(h.Failed) != 1 {
		t.Errorf("failed: %v", h.Failed)
	}
}

// Alerts that fired at the same time come in the order of their labels, so that a rebuilt report is the same.
func TestFiringsAreSorted(t *testing.T) {
	a, _ := recorded(t)
	for range 10 {
		h, err := mustParse(t, testRules).Replay(t.Context(), a, Options{})
		if err != nil {
			t.Fatal(err)
		}
		once := h.Of("Once")
		if len(once) != 2 || once[0].Labels["instance"] != "etcd-0" || once[1].Labels["instance"] != "etcd-1" {
			t.Fatalf("firings %+v", once)
		}
	}
}

// A template that may need much memory or time stays unexpanded.
func TestTemplatesAreBounded(t *testing.T) {
	a, _ := recorded(t)
	for text, want := range map[string]string{
		`{{ with $labels.job }}{{ . | toUpper }}{{ end }} {{ if eq .Labels.job "etcd" }}{{ printf "%.4s" $labels.job }}{{ end }}`: "ETCD etcd",
		`{{ reReplaceAll "(d)" "$1!" $labels.job }}, "{{ 0.5 | humanizePercentage }}"`:                                            `etcd!, "50%"`,
		`{{ $x := "xxxxxxxx" }}` + strings.Repeat(`{{ $x = print $x $x }}`, 12) + `{{ $x }}`:                                      "",
		`{{ print "x" "x" | reReplaceAll "x" "xxxxxxxx" | reReplaceAll "x" "xxxxxxxx" }}`:                                         "",
		`{{ with print "x" "x" }}{{ with print . . }}{{ print . . }}{{ end }}{{ end }}`:                                           "",
		`{{ define "a" }}x{{ end }}{{ template "a" }}{{ template "a" }}`:                                                          "",
		`{{ range 5000 }}x{{ end }}`:       "",
		`{{ printf "%9999d" 1 }}`:          "",
		`{{ "%9999d" | printf }}`:          "",
		`{{ (printf "%9999d" 1) }}`:        "",
		strings.Repeat("{{ 1 }}", 1000):    "",
		strings.Repeat("x", maxTemplate*2): "",
	} {
		rules := strings.NewReplacer("{{ $value | humanizePercentage }} of {{ $labels.job }} are slow", text, "severity: warning", "severity: '"+text+"'").Replace(testRules)
		h, err := mustParse(t, rules).Only("Slow").Replay(t.Context(), a, Options{})
		if err != nil {
			t.Fatal(err)
		}
		if want == "" {
			want = text
		}
		if s := h.Of("Slow"); len(s) != 1 || s[0].Summary != want || s[0].Labels["severity"] != want {
			t.Errorf("%.80s gives %v", text, s)
		}
	}
}

// An alert that looks back further than the length of the run resolves when the cause has
// left its range, if nothing else happens.
func TestCalm(t *testing.T) {
	a, _ := recorded(t)
	h, err := mustParse(t, testRules).Replay(t.Context(), a, Options{Calm: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	// The last increase is at 100 s; a range that ends at 700 s or later begins after it.
	want := "Slow 75 105 135\nOnce 45 45 705\nOnce 45 45 705\n"
	if got := told(h); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

// A hidden job is absent immediately, as if its targets had been removed.
func TestHidden(t *testing.T) {
	a, start := recorded(t)
	h, err := mustParse(t, testRules).Only("Gone").Replay(t.Context(), a, Options{Hidden: []Hidden{{
		Matchers: []*labels.Matcher{labels.MustNewMatcher(labels.MatchEqual, "job", "etcd")},
		From:     start.Add(60 * time.Second), To: start.Add(120 * time.Second),
	}}})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := told(h), "Gone 60 75 120\n"; got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}
