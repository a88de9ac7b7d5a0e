package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/stormglass/stormglass/controlplane/control"
	"github.com/stormglass/stormglass/internal/exitcode"
)

// downWithin is the time limit of `down`: longer than the longest stop of a plane, including the time to undo faults
// (44 s).
const downWithin = 55 * time.Second

func downCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "down",
		Short: "Stop a control plane and wait until all its processes are gone",
		Long: `Stop a control plane in order: scheduler and controller manager, API server,
etcd. It returns when all processes are gone. Data and keys stay in the
directory, and the next up resumes them.`,
		Example: `  controlplane down
  controlplane down --dir /tmp/plane`,
		Args: cobra.NoArgs,
	}
	dir := dirFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		client, err := dial(*dir)
		if errors.Is(err, control.ErrNotRunning) {
			fmt.Fprintf(cmd.ErrOrStderr(), "%s: %v\n", *dir, control.ErrNotRunning)
			return nil
		}
		if err != nil {
			return err
		}
		ctx, cancel := context.WithTimeout(cmd.Context(), downWithin)
		defer cancel()
		begun := time.Now()
		if err := client.Stop(ctx); err != nil {
			return exitcode.EnvironmentError(err)
		}
		fmt.Fprintf(cmd.OutOrStdout(), "%s: stopped after %.1f s\n", *dir, time.Since(begun).Seconds())
		return nil
	}
	return cmd
}
