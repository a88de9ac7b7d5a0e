package commandline

import (
	"fmt"
	"io"
	"os"
	"runtime/debug"

	"github.com/stormglass/stormglass/internal/exitcode"
	"github.com/stormglass/stormglass/internal/terminal"
)

// OnCrash makes a crash look like one. A panic of the calling goroutine sets the exit code to exitcode.Crash, after one line and
// a file with the stack. A panic of another goroutine, and a fatal error as for want of memory, prints the stacks and ends the
// program by SIGABRT. Defer it.
func OnCrash(program string, stderr io.Writer, code *int) {
	if reason := recover(); reason != nil {
		*code = exitcode.Crash
		where := "its stack could not be written"
		if f, err := os.CreateTemp("", program+"-crash-*.txt"); err == nil {
			_, err = fmt.Fprintf(f, "%v\n\n%s", reason, debug.Stack())
			if f.Close() == nil && err == nil {
				where = "its stack is in " + f.Name()
			}
		}
		fmt.Fprintf(stderr, "%s: crashed: %.200s; %s (this is a bug: please report it)\n", program, terminal.Clean(fmt.Sprint(reason)), where)
	}
}

// AbortOnCrash makes crashes that cannot be recovered end the program by SIGABRT, and not with the exit code of bad usage.
func AbortOnCrash() { debug.SetTraceback("crash") }
