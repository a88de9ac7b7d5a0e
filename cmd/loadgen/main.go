// Command loadgen drives storms at a Kubernetes control plane, its own or
// yours, and ends with a verdict. `loadgen --help` is the manual.
package main

import (
	"context"
	"os"
	"runtime/debug"
)

// gcPercent lets the heap grow to three times what is in use before it is
// collected, instead of twice: while thousands of nodes register, collecting was
// half of the generator's CPU time, which the control plane beside it lacks.
const gcPercent = 200

func main() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
	os.Exit(run(context.Background(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}
