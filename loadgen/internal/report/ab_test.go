package report_test

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/stormglass/stormglass/loadgen/internal/judge/paired"
	"github.com/stormglass/stormglass/loadgen/internal/report"
	"github.com/stormglass/stormglass/loadgen/result"
)

func pairs() result.AB {
	v := func(x float64) *float64 { return &x }
	return result.AB{
		Scenario: "ci-gate", Plan: paired.Default(), Answer: result.Regressed, ExitCode: 1, Thrown: 1,
		A: result.Side{}, B: result.Side{Spec: []string{"WatchList=false"}, Revision: "0123456789abcdef"},
		Reasons: []string{"write-mean: +12.0%"}, Notes: []string{},
		Pairs: []result.Pair{{Number: 0, Order: "AB"}, {Number: 1, Order: "BA", Thrown: "A: busy"}, {Number: 2, Order: "AB"}, {Number: 3, Order: "BA"}},
		Figures: []result.ABFigure{
			{Name: "write-mean", Unit: "seconds", Better: "lower", Gated: true, Answer: result.Regressed, A: v(0.002), B: v(0.00224), Change: v(0.12), Low: v(0.10), High: v(0.14), Spread: v(0.02), Changes: []float64{0.11, 0.115}},
			{Name: "rate", Unit: "per second", Better: "higher", Gated: true, Answer: result.CouldNotTell, Detail: "no data in B of pair 2", Changes: []float64{}},
			{Name: "p99<script>", Unit: "seconds", Better: "lower", Advice: "not calibrated", Answer: result.NotRegressed, A: v(0.1), B: v(0.1), Changes: []float64{}},
		},
	}
}

func TestABText(t *testing.T) {
	var b bytes.Buffer
	if err := report.AB(&b, pairs(), report.TerminalOptions{Width: 120, Dir: "runs/x"}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"REGRESSED  ci-gate  2 pairs, 1 discarded", "A  the unchanged scenario", "B  WatchList=false (0123456789ab)",
		"write-mean", "2 ms", "2.24 ms", "+12.0%", "+10.0% to +14.0%", "no effect on the answer:", "pair 1 was discarded: A: busy", "report  runs/x/ab.html",
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("%q is missing in\n%s", want, b.String())
		}
	}
}

// The terminal, the page and ab.json count the same pairs as discarded: the pair that warms up the machine is never one of
// them.
func TestThrownPairsAreCountedAlike(t *testing.T) {
	c := pairs()
	c.Pairs[0].Thrown = "B: cold"
	var text, page bytes.Buffer
	if err := errors.Join(report.AB(&text, c, report.TerminalOptions{Width: 120}), report.ABHTML(&page, c)); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(text.String(), " was discarded:"); n != c.Thrown || !strings.Contains(text.String(), "2 pairs, 1 discarded") {
		t.Errorf("%d named in the terminal, want %d", n, c.Thrown)
	}
	if n := strings.Count(page.String(), "<td>discarded:"); n != c.Thrown || !strings.Contains(page.String(), "2 pairs, 1 discarded") || strings.Contains(page.String(), "cold") {
		t.Errorf("%d named on the page, want %d", n, c.Thrown)
	}
}

// TestABPage: the page has a dot for each pair and no script, and no name becomes markup.
func TestABPage(t *testing.T) {
	var b bytes.Buffer
	if err := report.ABHTML(&b, pairs()); err != nil {
		t.Fatal(err)
	}
	page := b.String()
	if n := strings.Count(page, `dot" d="`); n != 2 {
		t.Errorf("%d dots, want 2", n)
	}
	if strings.Contains(page, "<script") || !strings.Contains(page, "p99&lt;script&gt;") {
		t.Error("the page does not escape a name")
	}
}

// TestABWithoutData: a metric that does not decide the answer and has no data in any run is in a line below the table.
func TestABWithoutData(t *testing.T) {
	for name, write := range map[string]func(io.Writer, result.AB) error{
		"text":     func(w io.Writer, c result.AB) error { return report.AB(w, c, report.TerminalOptions{Width: 120}) },
		"Markdown": report.ABSummary, "HTML": report.ABHTML,
	} {
		var b bytes.Buffer
		c := pairs()
		c.Figures[2].A, c.Figures[2].B = nil, nil
		if err := write(&b, c); err != nil {
			t.Fatal(err)
		}
		if n := strings.Count(b.String(), "rate"); n != 1 && name != "HTML" {
			t.Errorf("%s: the report shows a deciding metric without data %d times, want once", name, n)
		}
		if !strings.Contains(b.String(), "metrics without data in any run: p99") {
			t.Errorf("%s: the report does not list the advisory metric p99 as a metric without data:\n%s", name, b.String())
		}
	}
}

func TestABJUnit(t *testing.T) {
	var b bytes.Buffer
	if err := report.ABJUnit(&b, pairs()); err != nil {
		t.Fatal(err)
	}
	var suites struct {
		Tests    int `xml:"tests,attr"`
		Failures int `xml:"failures,attr"`
		Errors   int `xml:"errors,attr"`
	}
	if err := xml.Unmarshal(b.Bytes(), &suites); err != nil || suites.Tests != 2 || suites.Failures != 1 || suites.Errors != 1 {
		t.Errorf("%+v, %v", suites, err)
	}
}

// TestABJUnitOfADoubt: an answer that no figure shows is a separate case, so that no CI server is green at exit 3.
func TestABJUnitOfADoubt(t *testing.T) {
	c := pairs()
	c.Answer, c.ExitCode, c.Figures[0].Answer, c.Figures[1].Answer = result.CouldNotTell, 3, result.Improved, result.NotRegressed
	c.Sets = &result.Sets{Differences: []result.Difference{{Name: "kernel", A: "6.1", B: "6.8"}}}
	var b bytes.Buffer
	if err := report.ABJUnit(&b, c); err != nil || !strings.Contains(b.String(), `errors="1"`) || !strings.Contains(b.String(), `name="answer"`) || !strings.Contains(b.String(), "differs: kernel") {
		t.Errorf("%v\n%s", err, b.String())
	}
	var text bytes.Buffer
	if err := report.ABSummary(&text, c); err != nil || !strings.Contains(text.String(), "| kernel | 6.1 | 6.8 |") {
		t.Errorf("%v\n%s", err, text.String())
	}
}

func TestABSummary(t *testing.T) {
	var b bytes.Buffer
	if err := report.ABSummary(&b, pairs()); err != nil || !strings.Contains(b.String(), "| **regressed** | write-mean | 2 ms | 2.24 ms | +12.0% |") {
		t.Errorf("%v\n%s", err, b.String())
	}
}
