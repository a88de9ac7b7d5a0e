// Command loadgen runs load and faults against a Kubernetes control plane, and judges the result. The control plane can
// be bundled or the user's own. `loadgen --help` is the manual.
package main

import (
	"os"

	"github.com/stormglass/stormglass/loadgen/cli"
)

func main() { os.Exit(cli.Main()) }
