// Command loadgen runs load and faults against a Kubernetes control plane, either a bundled one or yours, and judges the
// result. `loadgen --help` is the manual.
package main

import (
	"os"

	"github.com/stormglass/stormglass/loadgen/cli"
)

func main() { os.Exit(cli.Main()) }
