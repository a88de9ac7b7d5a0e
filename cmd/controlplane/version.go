package main

import (
	"github.com/spf13/cobra"

	"github.com/stormglass/stormglass/controlplane/control"
	"github.com/stormglass/stormglass/internal/version"
)

func versionCommand() *cobra.Command {
	release := control.Linked()
	return version.Command("controlplane", release.Kubernetes, release.Etcd)
}
