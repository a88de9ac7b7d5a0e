package gate

import (
	"math"
	"slices"

	"github.com/stormglass/stormglass/loadgen/scenario"
)

// Objective is one built-in way to judge a run.
type Objective struct {
	// Name is the name that a gate writes after `objective:`.
	Name string
	// Unit of its value.
	Unit scenario.Unit
	// Expr is the PromQL of an objective that reads scraped metrics, empty for
	// one that the generator measured itself. $window is the length of the
	// window, $hours the same in hours but at least 1.
	Expr string
	// Default is the bound that its source states, or one to begin with, as
	// "max: 1s".
	Default string
	// Needs are the components (jobs) whose metrics it reads.
	Needs []string
	// Doc says what the value is, Source where it or its bound comes from.
	Doc    string
	Source string

	// spans: consecutive phases are one window. sums: windows are added up.
	spans, sums bool
	// quantile of the classic histogram that Expr reads; 0 for others.
	// buckets is the PromQL of its buckets.
	quantile float64
	buckets  string
	// gap says what the value is worth if a fault kept a target away.
	gap gapRule
	// measure takes the value from the generator's own measurements.
	measure func(evidence) finding
	// client: it is of the cluster as the generator saw it, so that the generator's
	// own delay may be part of it (generator.go).
	client bool
	// signals: it is about the scenario's signals.
	signals bool
	// of which results of loads it is; 0 for those that need no load.
	of scenario.LoadResult
	// check says what a scenario lacks for it; empty for nothing.
	check func(*scenario.Scenario) (hint, lack string)
	// most is the largest value there can be; 0: that of its unit, if that has one.
	most float64
	// least is the smallest value there can be, in the unit.
	least float64
	// during lists the phases in which there can be something to measure; nil: all.
	during func(*scenario.Scenario) []string
}

// largest is the largest value that the objective can have, infinite for none.
func (o Objective) largest() float64 {
	switch {
	case o.most > 0:
		return o.most
	case o.Unit == scenario.Ratio:
		return 1
	}
	return math.Inf(1)
}

// Objectives lists the built-in objectives: first those of scraped metrics,
// then those the generator measures, then those of faults.
func Objectives() []Objective { return slices.Concat(scraped(), measured(), recovered()) }

func find(name string) *Objective {
	all := Objectives()
	if i := slices.IndexFunc(all, func(o Objective) bool { return o.Name == name }); i >= 0 {
		return &all[i]
	}
	return nil
}

func names() []string {
	var all []string
	for _, o := range Objectives() {
		all = append(all, o.Name)
	}
	return all
}
