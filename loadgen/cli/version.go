package cli

import (
	"github.com/spf13/cobra"

	"github.com/stormglass/stormglass/controlplane/control"
	"github.com/stormglass/stormglass/internal/version"
)

func newVersion() *cobra.Command {
	release := control.Newest()
	return version.Command("loadgen", release.Kubernetes, release.Etcd)
}
