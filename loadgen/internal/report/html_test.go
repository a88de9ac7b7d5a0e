package report

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"html"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/prometheus/promql/parser"

	"github.com/stormglass/stormglass/loadgen/internal/report/chart"
	"github.com/stormglass/stormglass/loadgen/result"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

func render(t *testing.T, r result.Result, src chart.Source) string {
	t.Helper()
	var buf bytes.Buffer
	text, err := scenario.Source(r.Run.Scenario)
	if err != nil {
		text = []byte("name: unknown to this version")
	}
	if err := HTML(context.Background(), &buf, r, events(r), nil, text, src); err != nil {
		t.Fatal(err)
	}
	return buf.String()
}

func TestSameRunSameBytes(t *testing.T) {
	r := stormRun()
	first := render(t, r, recording{result: r})
	for range 5 {
		if render(t, r, recording{result: r}) != first {
			t.Fatal("rendering the same run again results in another page")
		}
	}
}

func TestFirstScreenOrder(t *testing.T) {
	page := render(t, stormRun(), recording{result: stormRun()})
	last := -1
	for _, want := range []string{
		">FAIL<", "2 of 9 gates failed, 1 without data", "150 of 500 nodes stop at once", "84% over", "request-errors", "leader-changes", "not-ready",
		keyFsync + "</code>", keyRequests + "</code>", keyScheduling + "</code>", keyLeaders + "</code>", `id="h-time"`,
	} {
		at := strings.Index(page[last+1:], want)
		if at < 0 {
			t.Fatalf("%q is missing in the page, or too early", want)
		}
		last += at + 1
	}
}

// A label of a hostile cluster stays text everywhere.
func TestHostileTextStaysText(t *testing.T) {
	const evil = "</script><script>alert(1)</script><img src=x onerror=alert(2)>\x1b[2J\u202e"
	r := stormRun()
	r.Run.Scenario, r.Run.Cluster.Name, r.Run.Cluster.Bundled = evil, evil, false
	r.Run.Overrides, r.Run.WithoutGates = []string{evil}, []string{evil}
	r.Run.Labels = map[string]string{evil: evil}
	r.Reasons = append(r.Reasons, evil)
	r.Gates[0].Name, r.Gates[3].Detail, r.Gates[3].Expr = evil, evil, evil
	r.Key[1].Rows[0].Label, r.Key[0].Missing, r.Key[0].Rows = evil, evil, nil
	r.Measurements.Phases[2].Name = evil
	r.Measurements.Phases[2].Requests[0].Load, r.Measurements.Phases[2].Requests[0].Variant = evil, evil
	r.Measurements.Phases[2].Requests[0].Outcomes[evil] = 1
	r.Run.Cluster.Deviations[0].Value = evil
	b := &r.Breakdown[0]
	b.Phase, b.Load, b.Verb, b.Resource, b.Variant, b.Tenant, b.UnexplainedNote, b.Warnings = evil, evil, evil, evil, evil, evil, evil, []string{evil}
	b.Parts[0].Name, b.Parts[0].Note, b.Parts[0].Of = evil, evil, evil
	b.Slow, b.ClientMean = &result.SlowRequests{Count: 1, Layers: map[string]float64{evil: 1}}, 99
	r = withTraces(r, evil, evil)
	x := &r.Traces.Slowest[0]
	x.ID, x.Load, x.Verb, x.Resource, x.Failure = evil, evil, evil, evil, evil
	x.Spans[3].Name, x.Spans[3].Process, x.Spans[0].Events[0].Name = evil, evil, evil
	life := &r.Traces.Pods[0]
	life.Pod, life.Writes[0].What, life.Writes[0].Client, life.Writes[0].Trace = evil, evil, evil, evil
	r.Traces.Names[0].Name, r.Traces.Dropped[evil] = evil, 1
	r.Gates[3].WorstPhase, r.Gates[3].Objective = evil, "request-latency"
	page := render(t, r, hostile(evil))
	if n := strings.Count(page, "<script"); n != 2 {
		t.Errorf("%d script elements, want our two", n)
	}
	if strings.Contains(page, "<img") || strings.ContainsAny(page, "\x1b\u202e") {
		t.Error("the page contains foreign markup or control characters")
	}
	var out, junit strings.Builder
	if err := Terminal(&out, r, TerminalOptions{Dir: evil}); err != nil {
		t.Fatal(err)
	}
	if strings.ContainsAny(out.String(), "\x1b\u202e") {
		t.Error("a control character reached the terminal")
	}
	if err := JUnit(&junit, r); err != nil {
		t.Fatal(err)
	}
	checkJUnit(t, junit.String())
}

type hostile string

func (h hostile) Range(_ context.Context, _ string, start, _ time.Time, _ time.Duration) ([]chart.Series, error) {
	s := string(h)
	labels := map[string]string{}
	for _, l := range []string{"verb", "instance", "name", "code", "load", "cause", "queue", "result", "operation", "priority_level", "request_kind"} {
		labels[l] = s
	}
	return []chart.Series{{Labels: labels, Points: []chart.Point{{T: start, V: 1}, {T: start.Add(10 * time.Second), V: 2}}}}, nil
}

func TestChartsSayWhyTheyAreEmpty(t *testing.T) {
	cases := []struct {
		name string
		run  func() result.Result
		src  func(result.Result) chart.Source
		want []string
	}{
		{"nothing recorded", blindRun, func(result.Result) chart.Source { return nil }, []string{"No metrics were recorded in this run."}},
		{"no nodes, no pods", floodRun, func(r result.Result) chart.Source { return recording{result: r} }, []string{"This run simulated no nodes.", "This run created no pods."}},
		{"a metric removed", stormRun, func(r result.Result) chart.Source { return recording{result: r, empty: keyFsync} },
			[]string{"No samples of " + keyFsync + " in this run.", "This run had no watch loads."}},
		{"good news", stormRun, func(r result.Result) chart.Source { return recording{result: r, empty: "apiserver_request_total{code"} },
			[]string{"No answer with a 4xx or 5xx code was recorded."}},
		{"query fails", stormRun, func(r result.Result) chart.Source { return recording{result: r, err: errors.New("block is corrupt")} },
			[]string{"The query failed: block is corrupt."}},
		{"not scraped", func() result.Result {
			r := stormRun()
			r.Run.Cluster.Targets = []string{"kube-apiserver-0"}
			return r
		}, func(r result.Result) chart.Source { return recording{result: r, empty: "etcd"} }, []string{"etcd was not scraped in this run."}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			r := c.run()
			page := render(t, r, c.src(r))
			for _, want := range c.want {
				if !strings.Contains(page, want) {
					t.Errorf("the page lacks %q", want)
				}
			}
			// Each chart is either drawn or listed as missing, with the reason.
			for _, s := range chartSections() {
				for _, c := range s.Charts {
					drawn := strings.Contains(page, `id="`+chart.ID(chart.Slug(c.Title))+`"`)
					if folded := strings.Contains(page, html.EscapeString(c.Title)+"</b>") || strings.Contains(page, html.EscapeString(c.Title)+"; "); drawn == folded {
						t.Errorf("%s: drawn: %v, listed with a reason: %v; want one of both", c.Title, drawn, folded)
					}
				}
			}
			if plots, figures := strings.Count(page, `class="plot"`), strings.Count(page, "<figure"); plots != figures {
				t.Errorf("the page has %d figures and %d plots", figures, plots)
			}
		})
	}
}

func TestQueriesParse(t *testing.T) {
	p := parser.NewParser(parser.Options{})
	queries := 0
	measured := result.Measurements{Scrapes: result.Scrapes{Done: 1}}
	for _, s := range chartSections() {
		for _, c := range s.Charts {
			if c.Needs != "" && unmet(c.Needs, measured) == "" {
				t.Errorf("%s needs %q, which is not known", c.Title, c.Needs)
			}
			for _, q := range c.Queries {
				if q.Expr == "" {
					continue
				}
				queries++
				if _, err := p.ParseExpr(windows(chart.Grid{Step: 5 * time.Second}).Replace(q.Expr)); err != nil {
					t.Errorf("%s: %v", q.Expr, err)
				}
			}
		}
	}
	if queries < 20 {
		t.Errorf("the page has only %d queries", queries)
	}
}

// With thousands of series and points the page stays small and says what it left out.
func TestManySeriesAndPointsStaySane(t *testing.T) {
	r := stormRun()
	r.Run.Ended = began.Add(6 * time.Hour)
	for i := range r.Measurements.Phases {
		p := &r.Measurements.Phases[i]
		p.Start, p.End = began.Add(time.Duration(i)*time.Hour), began.Add(time.Duration(i+1)*time.Hour)
	}
	page := render(t, r, crowd(3000))
	if !strings.Contains(page, "8 of 3,000 series are shown: those with the highest peaks.") {
		t.Error("the page does not say that it shows some of the series")
	}
	if len(page) > 4<<20 {
		t.Errorf("the page has %d bytes", len(page))
	}
	for _, d := range regexp.MustCompile(` d="(M[^"]*)"`).FindAllStringSubmatch(page, -1) {
		if n := strings.Count(d[1], "L"); n > chart.MaxPoints {
			t.Fatalf("a line has %d points", n)
		}
	}
}

type crowd int

func (c crowd) Range(_ context.Context, _ string, start, end time.Time, step time.Duration) ([]chart.Series, error) {
	var out []chart.Series
	for i := range int(c) {
		s := chart.Series{Labels: map[string]string{"instance": fmt.Sprint("i", i), "verb": fmt.Sprint("v", i), "name": fmt.Sprint("n", i)}}
		for t := start; !t.After(end); t = t.Add(step / 2) {
			if i >= 10 && len(s.Points) > 2 {
				break
			}
			s.Points = append(s.Points, chart.Point{T: t, V: float64(i + 1)})
		}
		out = append(out, s)
	}
	return out, nil
}

func TestWriteReplacesWholeFiles(t *testing.T) {
	dir := t.TempDir()
	r := stormRun()
	text, _ := scenario.Source(r.Run.Scenario)
	for range 2 {
		if err := Write(context.Background(), dir, r, events(r), nil, text, recording{result: r}); err != nil {
			t.Fatal(err)
		}
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	if got := strings.Join(names, " "); got != "junit.xml report.html result.json" {
		t.Errorf("the directory has %s", got)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	before, _ := os.ReadFile(filepath.Join(dir, result.HTMLFile))
	if err := Write(ctx, dir, r, events(r), nil, text, recording{result: r}); !errors.Is(err, context.Canceled) {
		t.Errorf("error of a cancelled Write = %v", err)
	}
	if after, _ := os.ReadFile(filepath.Join(dir, result.HTMLFile)); !bytes.Equal(before, after) {
		t.Error("a cancelled Write changed the page")
	}
	if err := Write(context.Background(), filepath.Join(dir, "gone"), r, nil, nil, text, nil); err == nil || !strings.Contains(err.Error(), "result.json: no such file or directory (") {
		t.Errorf("error of Write to a missing directory = %v", err)
	}
	// A directory in place of a file that cannot be removed is named, on one line.
	inPlace := filepath.Join(dir, result.JUnitFile)
	if err := errors.Join(os.Remove(inPlace), os.MkdirAll(filepath.Join(inPlace, "full"), 0o700)); err != nil {
		t.Fatal(err)
	}
	want := "write " + inPlace + ": file exists; the existing file is from an earlier verdict (make the directory writable, and remove anything at this path that is not a file)"
	if err := Write(context.Background(), dir, r, nil, nil, text, nil); err == nil || err.Error() != want {
		t.Errorf("a directory in place of a file: %v, want %s", err, want)
	}
}

// The command repeats a run with its original options, including omitted gates.
func TestCommandRepeatsTheRun(t *testing.T) {
	var r result.Result
	r.Run.Scenario, r.Run.Cluster.Bundled = "watch-flood", true
	r.Run.Overrides, r.Run.WithoutGates = []string{"nodes.count=5", "record.drop=[a b]"}, []string{"lost"}
	r.Run.Labels = map[string]string{"team": "core", "for": "the release"}
	if typed, _ := commands(r); typed != "loadgen run watch-flood --set nodes.count=5 --set 'record.drop=[a b]' --without-gate lost --label 'for=the release' --label team=core" {
		t.Errorf("got %s", typed)
	}
}
