package main

import (
	"testing"

	"github.com/stormglass/stormglass/loadgen"
)

// checkPanels runs every query of every dashboard on the run in dir: each
// returns data, or has a reason for no data that holds in this very recording.
func checkPanels(t *testing.T, dir string) {
	t.Helper()
	checked, err := loadgen.CheckPanels(t.Context(), dir)
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
