// Command loadgen drives storms at a Kubernetes control plane, its own or
// yours, and ends with a verdict. `loadgen --help` is the manual.
package main

import (
	"context"
	"os"
)

func main() {
	os.Exit(run(context.Background(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}
