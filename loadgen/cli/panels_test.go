package cli

import (
	"testing"

	"github.com/stormglass/stormglass/loadgen/internal/report/panel"
	"github.com/stormglass/stormglass/loadgen/internal/rundir"
)

// checkPanels runs every query of every dashboard on the run in dir. Each query must return data, or lack data for a
// reason that holds in this recording.
func checkPanels(t *testing.T, dir string) {
	t.Helper()
	rec, err := rundir.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer rec.Close()
	run, err := panel.Recorded(rec)
	if err != nil {
		t.Fatal(err)
	}
	checked, err := panel.Check(t.Context(), rec.Archive, run.Span)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range checked {
		switch {
		case c.Problem != "":
			t.Error(c)
		case c.Panel == "Phases" && c.Numbers == 0:
			t.Errorf("the run's phases are not among its own metrics: %s", c)
		}
	}
}
