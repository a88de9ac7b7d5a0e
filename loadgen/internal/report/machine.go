package report

import (
	"strings"

	"github.com/stormglass/stormglass/loadgen/internal/report/chart"
	"github.com/stormglass/stormglass/loadgen/result"
)

// busyMachine is one line on the phases that were measured on a busy machine; empty: none was.
func busyMachine(r result.Result) string {
	if len(r.BusyMachine) == 0 {
		return ""
	}
	return "machine: " + chart.Clean(strings.Join(r.BusyMachine, "; ")) + ": latencies are measured on a busy machine (stop them, or run on a quiet machine)"
}
