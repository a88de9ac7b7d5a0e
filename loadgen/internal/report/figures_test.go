package report

import (
	"bytes"
	"context"
	"strings"
	"testing"

	"github.com/stormglass/stormglass/loadgen/result"
)

// Figures of the program's measurements are in the page and in the summary, with their units, or with the reason why they are
// missing.
func TestFigures(t *testing.T) {
	r := schedulingRun()
	r.Measurements.Phases[1].Custom = []result.Custom{
		{Measurement: "lost", Error: "no watch <b>"},
		{Measurement: "reconcile", Figures: []result.CustomFigure{{Name: "p99", Value: 0.25, Unit: "seconds"}, {Name: "cache", Value: 3e6, Unit: "bytes"}}},
	}
	var page, terminal bytes.Buffer
	if err := HTML(context.Background(), &page, r, nil, nil, nil, nil); err != nil {
		t.Fatal(err)
	}
	if err := Terminal(&terminal, r, TerminalOptions{Width: 120}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"reconcile/p99", "250 ms", "reconcile/cache", "3 MB", "no values: no watch"} {
		if !strings.Contains(page.String(), want) || !strings.Contains(terminal.String(), want) {
			t.Errorf("%q is missing in the page, or none in\n%s", want, terminal.String())
		}
	}
}
