package report

import (
	"html"
	"strings"
	"testing"
	"time"

	"github.com/stormglass/stormglass/loadgen/result"
)

// Comparisons list the spans that grew, on the terminal and on the page.
func TestSpansThatGrew(t *testing.T) {
	grown := []result.SpanGrowth{{Verb: "create", Resource: "configmaps", Process: "kube-apiserver-0", Name: "HTTP POST", A: 0.001, B: 0.031}}
	variants, pairs := twoOfThree(), result.AB{Scenario: "s", Grown: grown}
	variants.Variants[2].Grown = grown
	for name, write := range map[string]func(b *strings.Builder) error{
		"variants on the terminal": func(b *strings.Builder) error { return Comparison(b, variants, TerminalOptions{Width: 100}) },
		"variants on the page":     func(b *strings.Builder) error { return ComparisonHTML(b, variants) },
		"A and B on the terminal":  func(b *strings.Builder) error { return AB(b, pairs, TerminalOptions{Width: 100}) },
		"A and B on the page":      func(b *strings.Builder) error { return ABHTML(b, pairs) },
	} {
		var b strings.Builder
		if err := write(&b); err != nil {
			t.Fatal(err)
		}
		text := strings.ToLower(html.UnescapeString(b.String()))
		for _, want := range []string{"that grew", "kube-apiserver-0 http post", "create configmaps", "1 ms", "31 ms"} {
			if !strings.Contains(text, want) {
				t.Errorf("%s lacks %q:\n%s", name, want, b.String())
			}
		}
	}
	var b strings.Builder
	if err := Comparison(&b, twoOfThree(), TerminalOptions{}); err != nil || strings.Contains(b.String(), "GREW") {
		t.Errorf("without traces: %s, %v", &b, err)
	}
}

// The report of a cause contains the command that shows the trace of the cause.
func TestTraceOfACauseIsPrinted(t *testing.T) {
	r := stormRun()
	r.Diagnosis = &result.Diagnosis{Answer: result.Diagnosed, Causes: []result.Cause{{
		Kind: "slow-wal-fsync", Title: "fsync is slow", Began: time.Unix(0, 0), Look: "the disk",
		Trace: &result.CauseTrace{ID: "276517ae1b1f700a9f961de022997b33", Request: "create configmaps", Seconds: 0.216, Span: "etcd-0 txn", Critical: 0.137},
	}}}
	var b strings.Builder
	if err := Terminal(&b, r, TerminalOptions{Width: 120, Dir: "runs/x"}); err != nil {
		t.Fatal(err)
	}
	if want := "trace      loadgen trace runs/x 276517ae: 137 ms of create configmaps (216 ms) in etcd-0 txn"; !strings.Contains(b.String(), want) {
		t.Errorf("lacks %q:\n%s", want, &b)
	}
	if page := html.UnescapeString(render(t, r, nil)); !strings.Contains(page, "<code>loadgen trace DIR 276517ae</code>, 137 ms of create configmaps (216 ms) in etcd-0 txn.") {
		t.Error("the page lacks the trace")
	}
}
