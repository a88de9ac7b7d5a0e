package gate

import (
	"github.com/stormglass/stormglass/loadgen/internal/plan"
	"github.com/stormglass/stormglass/loadgen/result"
)

// Pending returns the gates of a scenario with their bounds, before they are judged.
func Pending(s *plan.Plan) ([]result.Gate, error) {
	gates, err := Compile(s)
	if err != nil {
		return nil, err
	}
	all := []result.Gate{}
	for _, c := range gates {
		all = append(all, result.Gate{
			Name: c.Name, Objective: c.objective.Name, Over: c.Over, Bound: c.bound, Op: c.op, Unit: string(c.objective.Unit),
		})
	}
	return all, nil
}
