package panel

import (
	"context"
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stormglass/stormglass/dashboards"
	"github.com/stormglass/stormglass/loadgen/internal/report/chart"
	"github.com/stormglass/stormglass/loadgen/result"
)

var began = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

func at(seconds int) time.Time { return began.Add(time.Duration(seconds) * time.Second) }

var span = Span{Start: began, End: at(600), Scrape: 5 * time.Second}

// sourceFunc is a function as a source.
type sourceFunc func(expr string, start, end time.Time, step time.Duration) ([]chart.Series, error)

func (f sourceFunc) Range(_ context.Context, expr string, start, end time.Time, step time.Duration) ([]chart.Series, error) {
	return f(expr, start, end, step)
}

// series returns a series with a value at each step and the given label.
func series(label, value string, start, end time.Time, step time.Duration, v func(time.Time) float64) chart.Series {
	s := chart.Series{Labels: map[string]string{label: value}}
	for t := start; !t.After(end); t = t.Add(step) {
		s.Points = append(s.Points, chart.Point{T: t, V: v(t)})
	}
	return s
}

// well returns a few lines for every query.
var well = sourceFunc(func(expr string, start, end time.Time, step time.Duration) ([]chart.Series, error) {
	var all []chart.Series
	for i, le := range []string{"0.001", "0.01", "+Inf"} {
		s := series("le", le, start, end, step, func(t time.Time) float64 { return float64(i+1) * (1 + t.Sub(began).Seconds()/600) })
		s.Labels["instance"], s.Labels["verb"] = fmt.Sprint("etcd-", i), "POST"
		all = append(all, s)
	}
	return all, nil
})

func draw(t *testing.T, src chart.Source, run Run) string {
	t.Helper()
	page, err := HTML(t.Context(), src, run)
	if err != nil {
		t.Fatal(err)
	}
	return string(page)
}

// TestPage: the page has all dashboards, folded, and an explanation.
func TestPage(t *testing.T) {
	page := draw(t, well, Run{Span: span, Phases: []Mark{{"storm", at(60), at(120)}}, Causes: []Cause{{Mark: Mark{"kill", at(70), at(80)}}}})
	boards, err := dashboards.Load()
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, d := range boards {
		if !strings.Contains(page, `<details class="pn-board" id="`+d.UID+`"><summary>`+d.Title) {
			t.Errorf("the page lacks %s", d.UID)
		}
		for _, r := range d.Rows {
			n += len(r.Panels)
		}
	}
	if got := strings.Count(page, `class="pn-panel `); got != n {
		t.Errorf("%d panels on the page, want %d", got, n)
	}
	for _, want := range []string{"the Grafana panels of dashboards/json", "<b>Do:</b>", `class="pn-fault"`, ">etcd-2<", ">0:00<", ">10:00<", ">each value covers 20 s<", ">each value covers 2 min<"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %s", want)
		}
	}
	if later := draw(t, well, Run{Span: span, Zero: at(-65)}); !strings.Contains(later, ">1:05<") || !strings.Contains(later, ">11:05<") {
		t.Error("the page has another clock")
	}
	if strings.Contains(page, "<details open") || strings.Contains(page, `" open>`) || strings.Contains(page, "<script") {
		t.Error("a part of the page is open, or the page has a script")
	}
	for range 3 {
		if draw(t, well, Run{Span: span, Phases: []Mark{{"storm", at(60), at(120)}}, Causes: []Cause{{Mark: Mark{"kill", at(70), at(80)}}}}) != page {
			t.Fatal("rendering the same run again results in another page")
		}
	}
}

// TestPageSaysWhatIsMissing: each panel has a picture or words.
func TestPageSaysWhatIsMissing(t *testing.T) {
	empty := sourceFunc(func(string, time.Time, time.Time, time.Duration) ([]chart.Series, error) { return nil, nil })
	for _, c := range []struct {
		name string
		src  chart.Source
		want []string
	}{
		{"nothing recorded", nil, []string{"No metrics were recorded in this run"}},
		{"empty", empty, []string{"A single etcd member has no peers.", "Nothing was recorded.", "No admission webhook was called.", "A report does not evaluate alerts."}},
		{"fails", sourceFunc(func(string, time.Time, time.Time, time.Duration) ([]chart.Series, error) {
			return nil, errors.New("block is corrupt")
		}),
			[]string{"The query failed: block is corrupt."}},
	} {
		page := draw(t, c.src, Run{Span: span})
		for _, want := range c.want {
			if !strings.Contains(page, want) {
				t.Errorf("%s: the page lacks %q", c.name, want)
			}
		}
		if panels := strings.Count(page, `class="pn-panel `); panels != strings.Count(page, `class="empty"`) && panels > 0 {
			t.Errorf("%s: a panel has neither a picture nor words", c.name)
		}
	}
}

// TestPageIsBounded: thousands of series and a long run do not make a large page.
func TestPageIsBounded(t *testing.T) {
	long := Span{began, began.Add(10 * time.Hour), time.Second}
	crowd := sourceFunc(func(_ string, start, end time.Time, step time.Duration) ([]chart.Series, error) {
		var all []chart.Series
		for i := range 40 {
			name := strings.Repeat("long", 30) + fmt.Sprint(i)
			s := series("instance", name, start, end, step, func(t time.Time) float64 { return 1000 * math.Abs(math.Sin(float64(t.Unix()*int64(i+1)))) })
			for _, l := range []string{"verb", "name", "le", "load", "job"} {
				s.Labels[l] = name
			}
			s.Labels["le"] = fmt.Sprint(i)
			all = append(all, s)
		}
		return all, nil
	})
	page := draw(t, crowd, Run{Span: long})
	if len(page) > MaxBytes {
		t.Errorf("the page has %d bytes, over %d", len(page), MaxBytes)
	}
	if !strings.Contains(page, "8 of 40 lines are shown: those with the highest peaks.") {
		t.Error("the page does not say that it shows some of the lines")
	}
}

// TestHostileText stays text.
func TestHostileText(t *testing.T) {
	const evil = "</svg><script>alert(1)</script>\x1b\u202e"
	src := sourceFunc(func(_ string, start, end time.Time, step time.Duration) ([]chart.Series, error) {
		s := series("le", "1", start, end, step, func(time.Time) float64 { return 1 })
		for _, l := range []string{"instance", "verb", "name", "load", "job", "code", "deployment", "resource", "queue", "alertname"} {
			s.Labels[l] = evil
		}
		return []chart.Series{s}, nil
	})
	page := draw(t, src, Run{Span: span, Phases: []Mark{{evil, at(1), at(2)}}})
	if strings.Contains(page, "<script") || strings.ContainsAny(page, "\x1b\u202e") {
		t.Error("the page contains foreign markup or control characters")
	}
}

// TestCheck has queries with data, without data for a valid, an invalid and no reason, and with values that are not
// numbers.
func TestCheck(t *testing.T) {
	peers := false
	src := sourceFunc(func(expr string, start, end time.Time, step time.Duration) ([]chart.Series, error) {
		switch {
		case strings.Contains(expr, "etcd_network_peer_round_trip_time_seconds"):
			return nil, nil
		case expr == `count(up{job="etcd"}) > 1` && !peers:
			return nil, nil
		case strings.Contains(expr, "etcd_disk_wal_write_bytes_total"):
			return []chart.Series{series("x", "", start, end, step, func(time.Time) float64 { return math.NaN() })}, nil
		case strings.Contains(expr, "etcd_server_proposals_pending"):
			return []chart.Series{series("x", "", start, end, step, func(time.Time) float64 { return math.Inf(1) })}, nil
		case strings.Contains(expr, "apiserver_current_inflight_requests"):
			return nil, errors.New("block is corrupt")
		}
		return well(expr, start, end, step)
	})
	find := func(panel string) Checked {
		all, err := Check(t.Context(), src, span)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range all {
			if c.Panel == panel {
				return c
			}
		}
		t.Fatalf("the page has no panel %q", panel)
		return Checked{}
	}
	if c := find("WAL fsync, p99 and median"); c.Problem != "" || c.Numbers == 0 {
		t.Error(c)
	}
	if c := find("Round trip to peers, mean"); c.Excuse != "A single etcd member has no peers." || c.Problem != "" {
		t.Error(c)
	}
	for panel, want := range map[string]string{
		"Written to the log": "names no reason", "Proposals that wait": "infinite", "Requests in flight": "block is corrupt",
	} {
		if c := find(panel); !strings.Contains(c.Problem, want) {
			t.Errorf("%s: want %q", c, want)
		}
	}
	peers = true
	if c := find("Round trip to peers, mean"); !strings.Contains(c.Problem, "does not apply") {
		t.Errorf("the excuse holds although there are peers: %s", c)
	}
}

// TestRunOf: a fault of the plane ends with its own event, a fault of nodes with
// their recovery, others with the run.
func TestRunOf(t *testing.T) {
	var r result.Result
	r.Measurements.Phases = []result.Phase{{Name: "steady", Start: at(0), End: at(60)}, {Name: "storm", Start: at(60), End: at(300)}}
	run := RunOf(r, []result.Event{
		{Time: at(70), Kind: "fault-begin", Name: "slowFsync", Fault: "f1"},
		{Time: at(80), Kind: "fault", Name: "nodeFailure"},
		{Time: at(90), Kind: "fault-end", Name: "slowFsync", Fault: "f1"},
		{Time: at(95), Kind: "fault-begin", Name: "kill", Fault: "f2"},
		{Time: at(200), Kind: "fault", Name: "nodeRecovery"},
	}, time.Second)
	want := []Mark{{"slowFsync", at(70), at(90)}, {"nodeFailure", at(80), at(200)}, {"kill", at(95), at(300)}}
	if !run.Start.Equal(at(0)) || !run.End.Equal(at(300)) || len(run.Phases) != 2 || fmt.Sprint(run.Faults()) != fmt.Sprint(want) {
		t.Errorf("got %+v", run)
	}
}

// TestTexts: values as a person reads them.
func TestTexts(t *testing.T) {
	for _, c := range []struct {
		unit string
		v    float64
		want string
	}{
		{"s", 0.0123, "12.3 ms"}, {"s", 90, "90 s"}, {"s", 600, "10 min"}, {"s", 0.00002, "20 µs"}, {"percentunit", 0.144, "14.4%"},
		{"bytes", 3 << 30, "3 GiB"}, {"decbytes", 653e6, "653 MB"}, {"Bps", 1.5e6, "1.5 MB/s"}, {"reqps", 12345, "12.3 k/s"}, {"short", 0, "0"}, {"short", 2e-6, "<0.001"},
		{"short", 1234, "1.23 k"}, {"bool_yes_no", 1, "yes"}, {"bool_on_off", 0, "off"}, {"s", math.NaN(), chart.None},
		{"s", 0.0009999, "1 ms"}, {"s", 0.99999, "1 s"}, {"reqps", 999.99, "1 k/s"},
	} {
		if got := chart.Grafana(c.unit, c.v); got != c.want {
			t.Errorf("%g %s is %q, want %q", c.v, c.unit, got, c.want)
		}
	}
}

// TestPaths: whole numbers, gaps, and dots for lone points.
func TestPaths(t *testing.T) {
	y := func(v float64) int { return int(v) }
	got := chart.CompactPath([]float64{1, 3, 2, math.NaN(), 7, math.NaN(), 5, 5}, y)
	if want := "M0 1l1 2 1-1M4 7h0M6 5l1 0"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got := chart.Area([]float64{0, 0}, []float64{2, 3}, y); got != "M0 2 1 3 1 0 0 0 z" {
		t.Errorf("got %s", got)
	}
	if bad := regexp.MustCompile(`[^-MHhlvVz0-9 ]`).FindString(got); bad != "" {
		t.Errorf("a path contains %q", bad)
	}
}

// TestPictures: rows are in the order in which they begin; counts have no halves;
// values over a panel's maximum are at its edge, with their values in the legend; and
// thresholds have their values there too.
func TestPictures(t *testing.T) {
	a := artist{span: span, step: 5 * time.Second, points: 121}
	lines := func(v map[string]func(second float64) float64) []chart.Series {
		var all []chart.Series
		for name, v := range v {
			s := series("instance", name, began, at(600), 5*time.Second, func(t time.Time) float64 { return v(t.Sub(began).Seconds()) })
			s.Points = slices.DeleteFunc(s.Points, func(p chart.Point) bool { return math.IsNaN(p.V) })
			all = append(all, s)
		}
		return all
	}
	draw := func(p dashboards.Panel, v map[string]func(float64) float64) picture {
		p.Title = "p"
		return a.draw([]answer{{panel: p, query: dashboards.Query{Legend: "{{instance}}"}, series: lines(v)}})
	}
	from := func(begin float64) func(float64) float64 {
		return func(s float64) float64 { return cond(s >= begin, 1, math.NaN()) }
	}
	phases := draw(dashboards.Panel{Kind: "state-timeline", Unit: "bool_on_off"}, map[string]func(float64) float64{"after": from(400), "steady": from(0), "loss": from(100)})
	var order []string
	for _, s := range phases.States {
		order = append(order, s.Name)
	}
	if got := strings.Join(order, " "); got != "steady loss after" {
		t.Errorf("phases are in the order %s", got)
	}
	elections := draw(dashboards.Panel{Kind: "timeseries", Unit: "short"}, map[string]func(float64) float64{"etcd-0": func(s float64) float64 { return cond(s > 300, 2, 1) }})
	for _, tick := range elections.Ticks {
		if strings.Contains(tick.Label, ".") {
			t.Errorf("a tick at %s leader changes", tick.Label)
		}
	}
	full := draw(dashboards.Panel{Kind: "timeseries", Unit: "percentunit", Max: 1, Warn: 0.8},
		map[string]func(float64) float64{"etcd-0": func(s float64) float64 { return cond(s > 300, 29.4, 0.85) }})
	if top := full.Ticks[len(full.Ticks)-1]; top.Label != "100%" || top.Y != 0 || full.Lines[0].Max != "2940%" {
		t.Errorf("the axis ends at %+v, the legend says %s", top, full.Lines[0].Max)
	}
	if len(full.Levels) != 1 || full.Levels[0].Text != "≥ 80%" || full.Levels[0].Y != 40 {
		t.Errorf("thresholds: %+v", full.Levels)
	}
	slow := draw(dashboards.Panel{Kind: "timeseries", Unit: "percentunit", Warn: 0.8}, map[string]func(float64) float64{"get": func(float64) float64 { return 0.001 }})
	if top := slow.Ticks[len(slow.Ticks)-1]; top.Label != "80%" {
		t.Errorf("one slow call of a thousand fills the panel: it ends at %s", top.Label)
	}
}
