package main

import (
	"testing"

	"github.com/stormglass/stormglass/loadgen"
)

// checkPanels asks every query of every dashboard of the run in dir: each has
// an answer, or a reason for none that holds in this very recording.
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
