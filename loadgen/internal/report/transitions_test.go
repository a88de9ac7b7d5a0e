package report

import (
	"bytes"
	"context"
	"strings"
	"testing"

	"github.com/stormglass/stormglass/loadgen/result"
)

// transitionRun has one transition with open objects and one without.
func transitionRun() result.Result {
	r := stormRun()
	finished, open := lat(500, .4), lat(510, 2)
	open.Clamped = 10
	r.Measurements.Phases[0].Transitions = []result.Transition{
		{Name: "pod-ready", Resource: "pods", From: "created", To: "ready", Began: 500, Latency: finished, External: finished},
		{Name: "job-complete", Resource: "jobs.batch", From: "created", To: "complete", Began: 512, Open: 10, Gone: 2, Latency: open, External: open, SoFar: &open, ExternalSoFar: &open},
	}
	return r
}

func TestTransitionsAreReported(t *testing.T) {
	table := transitionTable(transitionRun().Measurements.Phases)
	if len(table.Rows) != 2 || len(table.Rows[0]) != len(table.Head) {
		t.Fatalf("%v", table.Rows)
	}
	if row := strings.Join(table.Rows[1], "|"); !strings.HasPrefix(row, "fill|job-complete|jobs.batch|created|complete|512|10|2|") || !strings.Contains(row, "|open|open|open|") {
		t.Errorf("a row with open objects: %s", row)
	}
	if row := strings.Join(table.Rows[0], "|"); strings.Contains(row, "open") {
		t.Errorf("a row without: %s", row)
	}
	var terminal, markdown, html bytes.Buffer
	for name, err := range map[string]error{
		"terminal": Terminal(&terminal, transitionRun(), TerminalOptions{}),
		"markdown": Summary(&markdown, transitionRun()),
		"html":     HTML(context.Background(), &html, transitionRun(), nil, nil, nil, nil),
	} {
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
	for want, text := range map[string]string{
		"TRANSITIONS": terminal.String(), "fill, job-complete ": terminal.String(),
		"| fill, job-complete | 512 | 10 |": markdown.String(), "<h3>Transitions</h3>": html.String(),
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing in\n%.3000s", want, text)
		}
	}
}
