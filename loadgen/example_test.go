package loadgen_test

import (
	"fmt"

	"github.com/stormglass/stormglass/loadgen"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

// A scenario is checked before anything starts. Errors name the file, the
// line, the field and what to write.
func ExampleCheck() {
	s, err := scenario.Parse("mine.yaml", []byte(`
apiVersion: stormglass/v1alpha1
kind: Scenario
name: mine
phases:
  - {name: calm, for: 30s, load: [{kind: requests, verb: get, rate: 10/s}]}
gates:
  - {name: reads, objective: request-latency, max: 50ms, over: [calm]}
  - {name: typo, objective: request-latncy, max: 50ms}
`), nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(loadgen.Check(s))
	// Output:
	// mine.yaml:9: gates.typo.objective: unknown objective "request-latncy" (did you mean "request-latency"?)
}

// The catalogue's scenarios can be changed field by field.
func ExampleOptions() {
	s, err := scenario.Read("rollout-500", []string{"nodes.count=50"})
	if err != nil {
		fmt.Println(err)
		return
	}
	o := loadgen.Options{Scenario: s, Overrides: []string{"nodes.count=50"}, Out: "runs/rollout-50"}
	fmt.Println(o.Scenario.Name, o.Scenario.Nodes.Count)
	// dir, err := loadgen.Run(ctx, o) runs it; loadgen.Judge(ctx, dir) returns the result.

	// Output:
	// rollout-500 50
}
