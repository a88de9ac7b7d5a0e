package main

import (
	"testing"

	"github.com/stormglass/stormglass/loadgen/scenario"
)

// Every plan is a scenario that `loadgen run` accepts, in any order of its faults.
func TestPlansAreScenarios(t *testing.T) {
	table, err := readTable()
	if err != nil {
		t.Fatal(err)
	}
	for seed := int64(1); seed < 6; seed++ {
		for _, p := range table.plans(options{seed: seed, plans: []string{"one", "three", "services", "pairs"}}) {
			if _, err := scenario.Parse(p.name+".yaml", []byte(p.yaml()), nil); err != nil {
				t.Errorf("seed %d: %v", seed, err)
			}
		}
	}
}
