package kind

import (
	"maps"
	"slices"
	"testing"

	"github.com/stormglass/stormglass/loadgen/scenario"
)

func TestEveryKindIsMade(t *testing.T) {
	have, want := slices.Sorted(maps.Keys(makers())), slices.Sorted(slices.Values(scenario.LoadKinds()))
	if !slices.Equal(have, want) {
		t.Errorf("makers has the kinds %v, a scenario %v", have, want)
	}
}
