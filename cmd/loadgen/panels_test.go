package main

import (
	"testing"

	"github.com/stormglass/stormglass/loadgen/panel"
	"github.com/stormglass/stormglass/loadgen/record"
)

// checkPanels asks every query of every dashboard of the run in dir: each has
// an answer, or a reason for none that holds in this very recording.
func checkPanels(t *testing.T, dir string) {
	t.Helper()
	run, err := panel.ReadRun(dir)
	if err != nil {
		t.Fatal(err)
	}
	archive, err := record.OpenArchive(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer archive.Close()
	checked, err := panel.Check(t.Context(), panel.Of(archive), run.Span)
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
