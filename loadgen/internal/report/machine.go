package report

import (
	"strings"

	"github.com/stormglass/stormglass/internal/terminal"
	"github.com/stormglass/stormglass/loadgen/result"
)

// busyMachine returns a line about the phases in which the machine was busy, or "" if there were none.
func busyMachine(r result.Result) string {
	if len(r.BusyMachine) == 0 {
		return ""
	}
	const most = 2
	why := strings.Join(r.BusyMachine[:min(len(r.BusyMachine), most)], "; ")
	if more := len(r.BusyMachine) - most; more > 0 {
		why += "; and in " + plural(int64(more), "more phase")
	}
	hint := "use an idle machine"
	if strings.HasPrefix(why, "other programs") {
		hint = "stop these programs, or " + hint
	}
	return "busy machine: " + terminal.Clean(why) + ". Latencies may be too high (" + hint + ")"
}
