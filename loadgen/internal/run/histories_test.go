package run

import (
	"testing"

	"github.com/stormglass/stormglass/loadgen/internal/load/history"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

// What validate refuses is what a history would refuse when the plane is up.
func TestValidateKnowsTheBoundOfAHistory(t *testing.T) {
	if scenario.MaxHistory != history.MaxOperations {
		t.Errorf("validate allows %d operations, a history holds %d", scenario.MaxHistory, history.MaxOperations)
	}
}
