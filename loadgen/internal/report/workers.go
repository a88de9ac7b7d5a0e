package report

import (
	"fmt"

	"github.com/stormglass/stormglass/internal/terminal"
	"github.com/stormglass/stormglass/loadgen/internal/report/chart"
	"github.com/stormglass/stormglass/loadgen/result"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

// workersTable returns a table of the work and the resource use of each worker. The table is empty if there is only
// one generator.
func workersTable(all []result.Worker) table {
	t := table{
		Caption: "Workers",
		Head: heads("Worker", "Process", ">Nodes", ">Sent", ">Watches", ">Delivered", ">Lag p99", ">CPU time", ">Peak memory", ">Peak file descriptors", ">Timer delay p99",
			">Clock offset", "Lost"),
		Note: "The coordinator divides nodes, requests and watches among the workers. Lag: from the intended start of a request until the worker began to process it, for the load with the longest lag. Timer delay: how late the worker's timers fired. Clock offset: the difference between the worker's clock and the coordinator's clock, ± the maximum error of this measurement. Lost: why the coordinator lost the worker.",
	}
	for _, w := range all {
		g := w.Generator
		clock := fmt.Sprintf("%.2f ± %.2f ms", w.ClockOffset*1000, w.ClockUncertainty*1000)
		t.add(chart.Count(w.Index), terminal.Clean(w.Name), chart.Count(w.Nodes), chart.Count(w.Sent), chart.Count(w.Watches), chart.Count(w.Delivered),
			seconds(w.LagP99), seconds(g.CPUSeconds), chart.Format(scenario.Size, float64(g.MaxRSSBytes)),
			chart.Count(g.MaxDescriptors), seconds(g.SchedulingLag.P99), clock, terminal.Clean(w.Lost))
	}
	return t
}
