package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/stormglass/stormglass/controlplane"
	"github.com/stormglass/stormglass/controlplane/control"
	"github.com/stormglass/stormglass/internal/exitcode"
)

func downCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "down",
		Short: "Stop a control plane",
		Long: `Stop a control plane: first the scheduler and the controller manager, then the API
server, then etcd. The command returns when all processes have ended.
'controlplane up' starts the control plane again with the same data and keys.

--delete kills the processes, which is faster, and deletes the directory.`,
		Example: `  controlplane down
  controlplane down --dir /tmp/plane --delete`,
		Args: cobra.NoArgs,
	}
	dir := dirFlag(cmd)
	remove := cmd.Flags().Bool("delete", false, "kill the processes, and delete the directory with all data, logs and keys")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		client, err := dial(*dir)
		switch {
		case errors.Is(err, control.ErrNotRunning):
			fmt.Fprintf(cmd.ErrOrStderr(), "%s: %v\n", *dir, control.ErrNotRunning)
		case err != nil:
			return err
		default:
			ctx, cancel := context.WithTimeout(cmd.Context(), control.StopWithin)
			defer cancel()
			stop, begun := client.Stop, time.Now()
			if *remove {
				stop = client.StopNow
			}
			if err := stop(ctx); err != nil {
				return exitcode.EnvironmentError(err)
			}
			fmt.Fprintf(cmd.OutOrStdout(), "%s: stopped after %.1f s\n", *dir, time.Since(begun).Seconds())
		}
		if !*remove {
			return nil
		}
		return deletePlane(cmd.OutOrStdout(), *dir)
	}
	return cmd
}

func deletePlane(stdout io.Writer, dir string) error {
	foreign, err := controlplane.Delete(dir)
	switch {
	case errors.As(err, new(*controlplane.UnusableError)):
		return err
	case errors.Is(err, os.ErrNotExist):
		return nil
	case err != nil:
		return exitcode.EnvironmentError(err)
	case len(foreign) > 0:
		fmt.Fprintf(stdout, "%s: deleted, except for files that the control plane did not write: %s\n", dir, strings.Join(foreign, ", "))
	default:
		fmt.Fprintf(stdout, "%s: deleted\n", dir)
	}
	return nil
}
