package report

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"html"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"

	"github.com/stormglass/stormglass/internal/browsertest"
	"github.com/stormglass/stormglass/loadgen/internal/report/chart"
	"github.com/stormglass/stormglass/loadgen/internal/report/document"
	"github.com/stormglass/stormglass/loadgen/result"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

// verbs is a chart.Source with the rate of requests of each verb, as a function of the time. It has no other metrics.
type verbs map[string]func(time.Time) float64

func (s verbs) Range(_ context.Context, expr string, start, end time.Time, step time.Duration) (all []chart.Series, err error) {
	if !strings.HasPrefix(expr, "sum by (verb) (rate(apiserver_request_total[") {
		return nil, nil
	}
	for _, verb := range slices.Sorted(maps.Keys(s)) {
		series := chart.Series{Labels: map[string]string{"verb": verb}}
		for t := start; !t.After(end); t = t.Add(step) {
			series.Points = append(series.Points, chart.Point{T: t, V: s[verb](t)})
		}
		all = append(all, series)
	}
	return all, nil
}

func constant(v float64) func(time.Time) float64 { return func(time.Time) float64 { return v } }

// overlaid returns a run that began at a time, with phases of the given lengths in seconds. 85 ms pass between two phases.
// The rate of GET is the number of the phase times 100, plus the seconds since its start.
func overlaid(name string, start time.Time, phases ...any) Overlaid {
	o := Overlaid{Name: name, Link: name + "/report.html", Interval: time.Second}
	o.Result = result.Result{Verdict: result.Pass, Run: result.Run{ID: name, Scenario: "storm", Started: start}}
	o.Result.Measurements.Scrapes.Done = 1
	for i := 0; i < len(phases); i += 2 {
		end := start.Add(time.Duration(phases[i+1].(int)) * time.Second)
		o.Result.Measurements.Phases = append(o.Result.Measurements.Phases, result.Phase{Name: phases[i].(string), Start: start, End: end})
		start = end.Add(85 * time.Millisecond)
	}
	recorded := o.Result.Measurements.Phases
	o.Source = verbs{"GET": func(t time.Time) float64 {
		i, _ := slices.BinarySearchFunc(recorded, t, func(p result.Phase, t time.Time) int { return p.Start.Compare(t.Add(time.Nanosecond)) })
		return 100*float64(i) + chart.Round6(t.Sub(recorded[i-1].Start).Seconds())
	}}
	return o
}

func renderOverlay(t *testing.T, differences []Difference, runs ...Overlaid) string {
	t.Helper()
	var b bytes.Buffer
	if err := OverlayHTML(t.Context(), &b, runs, differences, nil, "loadgen ab a b", []document.Link{{Text: "All runs", To: "index.html"}}); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// overlaidData is the data of the script on the page of several runs.
type overlaidData struct {
	Start  int64
	Step   float64
	N      int
	Phases []scriptPhase
	Charts []struct {
		Series []struct {
			Name   string
			Colour int
			Values []*float64
		}
	}
}

func dataOf(t *testing.T, page string) (d overlaidData) {
	t.Helper()
	_, text, _ := strings.Cut(page, `id="data">`)
	text, _, _ = strings.Cut(text, "</script>")
	if err := json.Unmarshal([]byte(text), &d); err != nil {
		t.Fatal(err)
	}
	return d
}

var (
	markup = regexp.MustCompile(`<[^>]*>|\s+`)
	spaces = regexp.MustCompile(` +`)
)

// rowsOf returns the text of each row of the table in a section, without the headings.
func rowsOf(page, section string) (rows []string) {
	_, text, _ := strings.Cut(page, ` id="`+section+`">`)
	text, _, _ = strings.Cut(text, "</section>")
	for _, row := range strings.Split(text, "<tr")[1:] {
		row, _, _ = strings.Cut("<tr"+row, "</tr>")
		rows = append(rows, strings.TrimSpace(spaces.ReplaceAllString(html.UnescapeString(markup.ReplaceAllString(row, " ")), " ")))
	}
	return rows[min(1, len(rows)):]
}

func chartTitles(page string) (titles []string) {
	for _, found := range regexp.MustCompile(`<h4 id="chart[^>]*>([^<]*)`).FindAllStringSubmatch(page, -1) {
		titles = append(titles, html.UnescapeString(found[1]))
	}
	return titles
}

// A phase that is longer in run b shifts the next phase in both runs. The same time of a phase is at the same point.
func TestOverlayAlignsPhases(t *testing.T) {
	a, b := overlaid("a", began, "calm", 10, "storm", 10), overlaid("b", began.Add(time.Hour+300*time.Millisecond), "calm", 20, "storm", 6)
	d := dataOf(t, renderOverlay(t, nil, a, b))
	if want := []scriptPhase{{"calm", 0, 20}, {"storm", 20, 30}}; !slices.Equal(d.Phases, want) {
		t.Errorf("phases %v, want %v", d.Phases, want)
	}
	if d.Start != 0 || d.Step != 1 || d.N != 31 || len(d.Charts) != 1 || len(d.Charts[0].Series) != 2 {
		t.Fatalf("%+v", d)
	}
	for i, s := range d.Charts[0].Series {
		calm, storm := []int{10, 20}[i], []int{10, 6}[i]
		for k, v := range s.Values {
			want := 100 + float64(k)
			if k >= 20 {
				want = 200 + float64(k) - 20
			}
			if measured := k <= calm && k < 20 || k >= 20 && k <= 20+storm; !measured {
				if v != nil {
					t.Errorf("%s at %d s: %v, want a gap", s.Name, k, *v)
				}
			} else if v == nil || *v != want {
				t.Errorf("%s at %d s: %v, want %v", s.Name, k, v, want)
			}
		}
	}
}

// A phase that only one run has gets its place in the order of that run.
func TestOverlayOfOtherPhases(t *testing.T) {
	page := renderOverlay(t, nil, overlaid("a", began, "fill", 5, "settle", 5), overlaid("b", began, "fill", 5, "storm", 5, "settle", 5))
	want := []scriptPhase{{"fill", 0, 5}, {"storm", 5, 10}, {"settle", 10, 15}}
	if got := dataOf(t, page).Phases; !slices.Equal(got, want) {
		t.Errorf("phases %v, want %v", got, want)
	}
	for _, want := range []string{"Phases only in b: storm.", `title="storm, 5 s in b"`, `title="fill, 5 s in a, 5 s in b"`} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %s", want)
		}
	}
}

func TestOverlayOfOnePhaseAndOfNone(t *testing.T) {
	one := overlaid("b", began, "only", 1)
	one.Source = nil
	page := renderOverlay(t, nil, overlaid("a", began, "only", 1), one)
	d := dataOf(t, page)
	if len(d.Charts) != 1 || len(d.Charts[0].Series) != 1 || d.Charts[0].Series[0].Name != "a" {
		t.Errorf("charts %+v", d.Charts)
	}
	for _, want := range []string{"No metrics were recorded in b.", ">1 phase<"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %s", want)
		}
	}
	page = renderOverlay(t, nil, overlaid("a", began), overlaid("b", began))
	if !strings.Contains(page, "No run recorded a phase, so there are no charts.") || strings.Contains(page, "<script") {
		t.Error("the page of runs without phases has charts, or does not say why they are missing")
	}
}

// Each declared chart has the four series with the highest peaks. A run has the same colour in all charts.
func TestOverlayLimitsSeries(t *testing.T) {
	a, b := overlaid("a", began, "calm", 10), overlaid("b", began, "calm", 10)
	a.Source = verbs{"APPLY": constant(0), "DELETE": constant(1), "GET": constant(6), "LIST": constant(5), "PATCH": constant(0), "POST": constant(4)}
	b.Source = verbs{"APPLY": constant(0), "DELETE": constant(2), "GET": constant(3), "PATCH": constant(9), "PUT": constant(.5)}
	page := renderOverlay(t, nil, a, b)
	if got, want := chartTitles(page), []string{"Requests by verb: PATCH", "Requests by verb: GET", "Requests by verb: LIST", "Requests by verb: POST"}; !slices.Equal(got, want) {
		t.Errorf("charts %q, want %q", got, want)
	}
	if n := strings.Count(page, "No data in b."); n != 2 {
		t.Errorf("%d charts say that b has no data, want LIST and POST", n)
	}
	if want := "Always 0: APPLY. The 4 series with the highest peaks are shown; 2 more are left out."; strings.Count(page, want) != 1 {
		t.Errorf("the page does not say once: %s", want)
	}
	for _, c := range dataOf(t, page).Charts {
		for _, s := range c.Series {
			if want := map[string]int{"a": 0, "b": 1}[s.Name]; s.Colour != want {
				t.Errorf("%s has colour %d, want %d", s.Name, s.Colour, want)
			}
		}
	}
}

func TestOverlayComparesGates(t *testing.T) {
	a, b, c := overlaid("a", began, "calm", 10), overlaid("b", began, "calm", 10), overlaid("c", began, "calm", 10)
	a.Result.Gates = []result.Gate{
		gate("same", "", result.Pass, ptr(.5), "<=", 1, scenario.Seconds), gate("slower", "", result.Pass, ptr(.1), "<=", 1, scenario.Seconds),
		gate("fewer", "", result.Pass, ptr(100), ">=", 1, scenario.PerSec), gate("broken", "", result.Pass, ptr(.9), "<=", 1, scenario.Seconds),
	}
	b.Result.Gates = []result.Gate{
		gate("same", "", result.Pass, ptr(.5), "<=", 1, scenario.Seconds), gate("slower", "", result.Pass, ptr(.2), "<=", 2, scenario.Seconds),
		gate("fewer", "", result.Pass, ptr(25), ">=", 1, scenario.PerSec), gate("broken", "", result.Fail, ptr(1.08), "<=", 1, scenario.Seconds),
		gate("new", "", result.NoData, nil, "<=", 1, scenario.Seconds),
	}
	b.Result.Gates[4].Withheld = ptr(3)
	c.Result.Gates = []result.Gate{a.Result.Gates[3], a.Result.Gates[2], b.Result.Gates[1], a.Result.Gates[0], b.Result.Gates[4]}
	got := rowsOf(renderOverlay(t, nil, a, b, c), "gates")
	want := []string{
		"broken ≤ 1 s PASS 900 ms FAIL 1.08 s 1.2× PASS 900 ms 1×",
		"fewer ≥ 1/s PASS 100/s PASS 25/s 0.25× largest change for the worse PASS 100/s 1×",
		"slower ≤ 1 s PASS 100 ms PASS 200 ms 2× bound ≤ 2 s PASS 200 ms 2× bound ≤ 2 s",
		"same ≤ 1 s PASS 500 ms PASS 500 ms 1× PASS 500 ms 1×",
		"new ≤ 1 s – NO DATA (3 s) NO DATA (3 s)",
	}
	if !slices.Equal(got, want) {
		t.Errorf("gates\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestOverlayComparesMetricsAndRequests(t *testing.T) {
	a, b := overlaid("a", began, "calm", 10), overlaid("b", began, "calm", 10)
	rate := func(v *float64) result.Figure {
		return result.Figure{Name: "rate", Unit: "per second", Better: "higher", Value: v}
	}
	a.Result.Figures, b.Result.Figures = []result.Figure{rate(ptr(10))}, []result.Figure{{Name: "wait", Unit: "seconds", Better: "lower", Value: ptr(1)}, rate(ptr(5))}
	a.Result.Key = []result.KeyMetric{{Name: keyLeaders, Rows: []result.KeyRow{{Label: "etcd-0", Value: ptr(0)}}}}
	b.Result.Key = []result.KeyMetric{{Name: keyLeaders, Rows: []result.KeyRow{{Label: "etcd-0", Value: ptr(2)}}}}
	trace := func(id string, took float64) result.Trace {
		return result.Trace{ID: id, Load: "writer", Verb: "create", Resource: "pods", Phase: "calm", Seconds: took, Spans: []result.TraceSpan{
			{Process: "loadgen", Name: "create pods", Self: took / 4}, {Process: "etcd-0", Name: "txn", Self: took / 2},
		}}
	}
	a.Result.Traces = &result.Traces{Slowest: []result.Trace{trace("aa", .2), trace("ab", .4), {ID: "ac", Client: "kube-scheduler", Seconds: 9}}}
	b.Result.Traces = &result.Traces{Slowest: []result.Trace{trace("ba", 1)}}
	page := renderOverlay(t, nil, a, b)
	for section, want := range map[string][]string{
		"metrics": {"rate 10/s 5/s 0.5× largest change for the worse", "wait – 1 s"},
		"key":     {"etcd-0 " + keyLeaders + " 0 2 largest change for the worse"},
		"slowest": {"writer: create pods 400 ms phase calm etcd-0 txn, 200 ms 1 s 2.5× largest change for the worse phase calm etcd-0 txn, 500 ms"},
	} {
		if got := rowsOf(page, section); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", section, got, want)
		}
	}
	for _, link := range []string{"a/report.html#trace-ab", "b/report.html#trace-ba"} {
		if !strings.Contains(page, `href="`+link+`"`) {
			t.Errorf("the page has no link to %s", link)
		}
	}
}

func TestOverlayDescribesRuns(t *testing.T) {
	a, b := overlaid("a", began, "calm", 10, "storm", 10), overlaid("b", began, "calm", 10)
	a.Result.Run.Cluster.Bundled, a.Result.Verdict = true, result.Fail
	a.Result.Measurements.Phases[0].Machine = &result.Machine{BusySeconds: 10, OwnSeconds: 10, Processors: 4}
	a.Result.Measurements.Phases[1].Machine = &result.Machine{BusySeconds: 30, OwnSeconds: 10, Processors: 4, Busy: "other programs used 2.0 of 4 processors"}
	a.Result.Diagnosis = &result.Diagnosis{Causes: []result.Cause{{Title: "a full queue", Strength: 4}, {Title: "a slow disk", Strength: 9}}}
	page := renderOverlay(t, nil, a, b)
	want := []string{
		"a FAIL 2026-11-21 03:04:05 20.1 s storm used 1.0 of 4 CPUs machine busy in phase storm a slow disk",
		"b PASS 2026-11-21 03:04:05 10 s storm – –",
	}
	if got := rowsOf(page, "runs"); !slices.Equal(got, want) {
		t.Errorf("runs %q, want %q", got, want)
	}
	for _, want := range []string{"does not prove a regression", `<pre class="command">loadgen ab a b</pre>`, "Nothing differs: the runs have the same settings, versions and host.", `href="index.html"`} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %s", want)
		}
	}
	page = renderOverlay(t, []Difference{{"etcd", []string{"3.6.1", ""}}}, a, b)
	if got, want := rowsOf(page, "differences"), []string{"etcd 3.6.1 –"}; !slices.Equal(got, want) || strings.Contains(page, "Nothing differs") {
		t.Errorf("differences %q, want %q", got, want)
	}
}

// An event that happened in all runs has one mark. The list names the run of another event.
func TestOverlayMarksEvents(t *testing.T) {
	a, b := overlaid("a", began, "calm", 10, "storm", 10), overlaid("b", began.Add(time.Minute), "calm", 20, "storm", 10)
	event := func(o *Overlaid, phase int, after time.Duration, kind result.EventKind, name string) {
		start := o.Result.Measurements.Phases[phase].Start
		o.Timeline = append(o.Timeline, result.Event{Time: start.Add(after), Kind: kind, Name: name, Fault: name})
	}
	event(&a, 1, 2*time.Second, result.EventFaultBegin, "kill")
	event(&b, 1, 3*time.Second, result.EventFaultBegin, "kill")
	event(&b, 0, 4*time.Second, result.EventAction, "scale")
	page := renderOverlay(t, nil, a, b)
	var list []string
	for _, found := range regexp.MustCompile(`<li><span class="dot.*?</li>`).FindAllString(page, -1) {
		list = append(list, strings.TrimSpace(spaces.ReplaceAllString(markup.ReplaceAllString(found, " "), " ")))
	}
	if want := []string{"1 0:04 scale , only in b", "2 0:22 fault kill"}; !slices.Equal(list, want) {
		t.Errorf("events %q, want %q", list, want)
	}
}

func TestOverlayKeepsHostileTextAsText(t *testing.T) {
	const evil = "</script><script>alert(1)</script><img src=x onerror=alert(2)>\x1b[2J\u202e"
	a, b := overlaid(evil, began, "calm", 10, evil, 10), overlaid("b", began, "calm", 10)
	a.Link = "javascript:alert(3)"
	a.Source = verbs{evil: constant(1), "GET": constant(2)}
	a.Result.Gates, a.Result.Run.Scenario = []result.Gate{gate(evil, evil, result.Fail, ptr(1), evil, 1, evil)}, evil
	a.Result.Figures, a.Result.Key = []result.Figure{{Name: evil, Unit: evil, Value: ptr(1)}}, []result.KeyMetric{{Name: evil, Rows: []result.KeyRow{{Label: evil, Value: ptr(1)}}}}
	a.Result.Diagnosis = &result.Diagnosis{Causes: []result.Cause{{Title: evil}}}
	a.Result.Traces = &result.Traces{Slowest: []result.Trace{{ID: evil, Load: evil, Verb: evil, Resource: evil, Phase: evil, Seconds: 1, Spans: []result.TraceSpan{{Process: evil, Name: evil, Self: 1}}}}}
	a.Timeline = []result.Event{{Time: began.Add(time.Second), Kind: result.EventAction, Name: evil, Detail: evil}}
	var page bytes.Buffer
	if err := OverlayHTML(t.Context(), &page, []Overlaid{a, b}, []Difference{{evil, []string{evil, evil}}}, []string{evil}, evil, nil); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(page.String(), "<script"); n != 2 {
		t.Errorf("%d script elements, want our two", n)
	}
	if strings.Contains(page.String(), "<img") || strings.Contains(page.String(), "javascript:") || strings.ContainsAny(page.String(), "\x1b\u202e") {
		t.Error("the page contains foreign markup, a script in a link, or control characters")
	}
}

func TestOverlayNumberOfRuns(t *testing.T) {
	for n, valid := range map[int]bool{1: false, 2: true, 6: true, 7: false} {
		runs := make([]Overlaid, n)
		for i := range runs {
			runs[i] = overlaid(fmt.Sprint("run-", i), began, "calm", 3)
		}
		if err := OverlayHTML(t.Context(), &bytes.Buffer{}, runs, nil, nil, "", nil); (err == nil) != valid {
			t.Errorf("%d runs: %v", n, err)
		}
	}
}

// The crosshair shows the values of all runs, without the time of day. The page fits a narrow screen.
func TestOverlayInBrowser(t *testing.T) {
	later := stormRun()
	for i := range later.Measurements.Phases {
		p := &later.Measurements.Phases[i]
		p.Start, p.End = p.Start.Add(time.Duration(10*i)*time.Second), p.End.Add(time.Duration(10*(i+1))*time.Second)
	}
	runs := []Overlaid{
		{Name: "before", Link: "before.html", Result: stormRun(), Timeline: events(stormRun()), Source: recording{result: stormRun()}, Interval: 5 * time.Second},
		{Name: "after", Link: "after.html", Result: later, Timeline: events(later), Source: recording{result: later}, Interval: 5 * time.Second},
	}
	file := filepath.Join(t.TempDir(), "overlay.html")
	if err := os.WriteFile(file, []byte(renderOverlay(t, []Difference{{"etcd", []string{"3.6.1", "3.6.2"}}}, runs...)), 0o644); err != nil {
		t.Fatal(err)
	}
	ctx := browsertest.Start(t)
	seen := &watched{}
	if err := chromedp.Listen(ctx, seen.event); err != nil {
		t.Fatal(err)
	}
	if _, err := chromedp.Call(ctx, network.Enable, network.EnableParams{}); err != nil {
		t.Fatal(err)
	}
	for _, scheme := range []string{"light", "dark"} {
		for _, width := range []int64{1400, 400} {
			t.Run(fmt.Sprint(scheme, " ", width), func(t *testing.T) {
				media := emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}}
				if _, err := chromedp.Call(ctx, emulation.SetEmulatedMedia, media); err != nil {
					t.Fatal(err)
				}
				if err := chromedp.Do(ctx, chromedp.EmulateViewport(width, 860), chromedp.Navigate("file://"+file)); err != nil {
					t.Fatal(err)
				}
				if px := browsertest.Must(t, ctx, chromedp.Evaluate[int](overflow)); px > 0 {
					t.Errorf("the page is %d px wider than the screen", px)
				}
				for _, c := range slices.Concat(browsertest.Must(t, ctx, chromedp.Evaluate[[]string](contrast)), browsertest.Must(t, ctx, chromedp.Evaluate[[]string](invisible))) {
					t.Errorf("contrast or no visible line: %s", c)
				}
				box := browsertest.Must(t, ctx, chromedp.Evaluate[[]float64](`(() => { const a = document.querySelector('.area'); a.scrollIntoView({block: 'center'}); const b = a.getBoundingClientRect(); return [b.left + b.width * .5, b.top + b.height / 2]; })()`))
				if err := chromedp.Do(ctx, chromedp.MouseEvent(input.DispatchMouseEventTypeMouseMoved, box[0], box[1])); err != nil {
					t.Fatal(err)
				}
				got := browsertest.Must(t, ctx, chromedp.Evaluate[readings](readout))
				if !strings.Contains(got.Tip, "before") || !strings.Contains(got.Tip, "after") || !strings.Contains(got.Tip, "/s") || !strings.Contains(got.Clock, ", recovery") || strings.Contains(got.Clock, "UTC") {
					t.Errorf("pointing shows %+v", got)
				}
				if bad, _ := seen.since(); len(bad) > 0 {
					t.Errorf("the page %q", bad)
				}
			})
		}
	}
}

// The page says which runs were downsampled.
func TestOverlayOfDownsampledRun(t *testing.T) {
	coarse := overlaid("b", began, "calm", 300)
	coarse.Interval, coarse.Downsampled = time.Minute, true
	page := renderOverlay(t, nil, overlaid("a", began, "calm", 300), coarse)
	for _, want := range []string{"The metrics were downsampled in b (one sample per 1m), so all charts are as coarse.", "covers only the 2m 30s before it"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %s", want)
		}
	}
}
