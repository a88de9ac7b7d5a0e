package report

import (
	"strings"

	"github.com/stormglass/stormglass/internal/terminal"
	"github.com/stormglass/stormglass/loadgen/result"
)

// busyMachine returns a line about the phases in which the machine was busy, or "".
func busyMachine(r result.Result) string {
	if len(r.BusyMachine) == 0 {
		return ""
	}
	const most = 2
	why := strings.Join(r.BusyMachine[:min(len(r.BusyMachine), most)], "; ")
	hint := "Use an idle machine"
	if strings.HasPrefix(why, "other programs") {
		hint = "Stop these programs, or use an idle machine"
	}
	if more := len(r.BusyMachine) - most; more > 0 {
		why += "; also in " + plural(int64(more), "more phase")
	}
	return "The machine was busy, so latencies may be too high: " + terminal.Clean(why) + ". " + hint
}
