package report

import (
	"strings"

	"github.com/stormglass/stormglass/internal/terminal"
	"github.com/stormglass/stormglass/loadgen/result"
)

// busyMachine returns sentences about the phases in which the machine was busy, or "".
func busyMachine(r result.Result) string {
	if len(r.BusyMachine) == 0 {
		return ""
	}
	const most = 2
	const others = "other programs used "
	why := r.BusyMachine[0]
	programs := strings.HasPrefix(why, others)
	for _, next := range r.BusyMachine[1:min(len(r.BusyMachine), most)] {
		if used, same := strings.CutPrefix(next, others); same && programs {
			why += ", " + used
		} else {
			why += "; " + next
		}
	}
	switch more := len(r.BusyMachine) - most; {
	case more == 1:
		why += "; 1 more phase was busy too"
	case more > 1:
		why += "; " + plural(int64(more), "more phase") + " were busy too"
	}
	hint := "Use an idle machine."
	if programs {
		hint = "Stop these programs, or use an idle machine."
	}
	return "The machine was busy, so latencies may be too high: " + terminal.Clean(why) + ". " + hint
}
