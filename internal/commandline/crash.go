package commandline

import (
	"fmt"
	"io"
	"os"
	"runtime/debug"

	"github.com/stormglass/stormglass/internal/exitcode"
	"github.com/stormglass/stormglass/internal/terminal"
)

// OnCrash handles a panic of the calling goroutine. Call it with defer. It writes the stack to a file, prints one line
// to stderr, and sets *code to exitcode.Crash. It cannot handle a panic of another goroutine or a fatal error, such as
// lack of memory. In these cases, Go prints the stacks; after AbortOnCrash, the program ends by SIGABRT.
func OnCrash(program string, stderr io.Writer, code *int) {
	if reason := recover(); reason != nil {
		*code = exitcode.Crash
		where := "writing the stack trace failed"
		if f, err := os.CreateTemp("", program+"-crash-*.txt"); err == nil {
			_, err = fmt.Fprintf(f, "%v\n\n%s", reason, debug.Stack())
			if f.Close() == nil && err == nil {
				where = "the stack trace is in " + f.Name()
			}
		}
		fmt.Fprintf(stderr, "%s: crashed: %.200s; %s (this is a bug: please report it)\n", program, terminal.Clean(fmt.Sprint(reason)), where)
	}
}

// AbortOnCrash makes the program end by SIGABRT after a crash that OnCrash cannot handle. Without it, the exit code
// would be 2, which means bad usage.
func AbortOnCrash() { debug.SetTraceback("crash") }
