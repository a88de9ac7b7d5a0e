package report

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/stormglass/stormglass/loadgen/result"
)

func twoOfThree() result.Comparison {
	v := func(x float64) *float64 { return &x }
	ratio := 0.42
	return result.Comparison{
		Schema: result.ComparisonSchema, Scenario: "stacked-etcd", Description: "Two disks <are> better.", ExitCode: 3, Started: began,
		Variants: []result.Variant{
			{Name: "stacked", Description: "one disk", Verdict: result.Pass},
			{Name: "broken", Verdict: result.NoData, ExitCode: 4, NotRun: "no space left on device"},
			{Name: "external", Set: []string{"controlPlane.etcd.topology=external"}, Verdict: result.Pass},
		},
		Rows: []result.Row{
			{Name: "writes", Objective: "mutating-latency", Unit: "seconds", Better: "lower",
				Values: []result.Value{{Value: v(0.5)}, {Detail: "it did not run"}, {Value: v(0.21), Detail: "worst of 3", Ratio: &ratio}}},
			{Name: "moves", Objective: "lease-failover", Unit: "seconds", Better: "lower",
				Values: []result.Value{{Value: v(0)}, {Detail: "it did not run"}, {Detail: "no lease moved"}}},
		},
	}
}

// The table has the values of each variant in a column, each with its ratio to the value of the first variant. A missing
// value has its reason.
func TestComparisonOnATerminal(t *testing.T) {
	var b bytes.Buffer
	if err := Comparison(&b, twoOfThree(), TerminalOptions{Width: 90, Dir: "runs/x"}); err != nil {
		t.Fatal(err)
	}
	want := `NO DATA  stacked-etcd  2 of 3 variants ran, 2 passed

VARIANT   VERDICT  DESCRIPTION AND CHANGED FIELDS
stacked   pass     one disk
broken    no data
external  pass     controlPlane.etcd.topology=external
broken: this variant did not run: no space left on device

METRIC  stacked  broken  external
writes   500 ms       –    210 ms  0.42×
moves       0 s       –         –
A value with × is the ratio to variant stacked.
moves, external: no data: no lease moved

report  runs/x/comparison.html
`
	if got := b.String(); got != want {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
}

// If the variants do not fit next to each other, each variant has a line.
func TestComparisonOfManyVariants(t *testing.T) {
	c := result.Comparison{Schema: result.ComparisonSchema, Scenario: "stages", Started: began}
	rows := []result.Row{{Name: "create-mean-at-the-server", Unit: "seconds"}, {Name: "cpu", Unit: "seconds"}}
	for i, name := range []string{"plain", "secretbox", "audit-log", "admission-webhook", "every-stage"} {
		c.Variants = append(c.Variants, result.Variant{Name: name, Verdict: result.Pass})
		for j := range rows {
			v := float64(i+1) / 100
			value := result.Value{Value: &v}
			if ratio := float64(i + 1); i > 0 {
				value.Ratio = &ratio
			}
			rows[j].Values = append(rows[j].Values, value)
		}
	}
	c.Rows = rows
	var b bytes.Buffer
	if err := Comparison(&b, c, TerminalOptions{Width: 70, Dir: "runs/x"}); err != nil {
		t.Fatal(err)
	}
	want := `
                    create-mean-
VARIANT            at-the-server           cpu
plain               10 ms         10 ms
secretbox           20 ms     2×  20 ms     2×
audit-log           30 ms     3×  30 ms     3×
admission-webhook   40 ms     4×  40 ms     4×
every-stage         50 ms     5×  50 ms     5×
A value with × is the ratio to variant plain.
`
	if !strings.Contains(b.String(), want) {
		t.Errorf("got:\n%s\nwant:\n%s", b.String(), want)
	}
}

// The page is self-contained, and text from a file cannot become markup.
func TestComparisonPage(t *testing.T) {
	c := twoOfThree()
	c.Variants[0].Reasons = []string{"<script>alert(1)</script>"}
	var b bytes.Buffer
	if err := ComparisonHTML(&b, c); err != nil {
		t.Fatal(err)
	}
	page := b.String()
	for _, want := range []string{
		`href="stacked/report.html"`, `href="external/report.html"`, "Two disks &lt;are&gt; better.", "width: 42%", "no space left on device", "default-src &#39;none&#39;",
		"started 2026-11-21 03:04:05 UTC, did not finish", "A value with × is the ratio to variant stacked.", `210 ms</span> <span class="dim">0.42×</span>`,
	} {
		if !strings.Contains(page, want) {
			t.Errorf("%q is missing in the page", want)
		}
	}
	if c.Ended = c.Started.Add(time.Minute); when(c) != "started 2026-11-21 03:04:05 UTC, took 1m" {
		t.Errorf("one that came to its end: %q", when(c))
	}
	for _, refused := range []string{"<script", "broken/report.html", "http://", "https://"} {
		if strings.Contains(page, refused) {
			t.Errorf("the page contains %q", refused)
		}
	}
}

// A report of a run has its variant, the command to repeat it, and its warnings.
func TestVariantAndWarningsAreInTheReport(t *testing.T) {
	r := result.Result{Verdict: result.Pass, Run: result.Run{
		Scenario: "stacked-etcd", Variant: "external", Warnings: []string{"mine.yaml:4: controlPlane.etcd.members: 4 members have a quorum of 3"},
	}}
	var text, page bytes.Buffer
	if err := Terminal(&text, r, TerminalOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := HTML(t.Context(), &page, r, nil, nil, nil, nil); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"stacked-etcd, variant external", "4 members have a quorum of 3"} {
		if !strings.Contains(text.String(), want) || !strings.Contains(page.String(), want) {
			t.Errorf("no %q on the terminal or the page:\n%s", want, text.String())
		}
	}
	if !strings.Contains(page.String(), "--variant external") {
		t.Error("the command that repeats the run lacks the variant")
	}
}
