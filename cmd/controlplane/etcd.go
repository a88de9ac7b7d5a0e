package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/stormglass/stormglass/controlplane/control"
	"github.com/stormglass/stormglass/internal/commandline"
	"github.com/stormglass/stormglass/internal/exitcode"
	"github.com/stormglass/stormglass/internal/userfile"
)

func etcdCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "etcd",
		Short: "Save or restore a snapshot of etcd",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(snapshotCommand(), restoreCommand())
	return cmd
}

// snapshotWithin is the time limit for a snapshot, and snapshotMax its maximum size. etcd advises against a database of
// more than 8 GiB.
const (
	snapshotWithin = 10 * time.Minute
	snapshotMax    = 64 << 30 // maximum size of a snapshot in bytes
)

func snapshotCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "snapshot FILE",
		Short: "Save a snapshot of etcd",
		Long: `Save a snapshot of etcd while the control plane runs: the database of one member, with
a hash. If a member fails, the command tries the next one. It does not overwrite a
file.`,
		Example: `  controlplane etcd snapshot /tmp/etcd.db
  controlplane etcdutl snapshot status /tmp/etcd.db -w table`,
		Args: cobra.ExactArgs(1),
	}
	dir := dirFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := commandline.NewFile(args[0]); err != nil {
			return err
		}
		cluster, err := running(*dir)
		if err != nil {
			return err
		}
		ctx, cancel := context.WithTimeout(cmd.Context(), snapshotWithin)
		defer cancel()
		begun := time.Now()
		if err := saveSnapshot(ctx, cluster, args[0]); err != nil {
			return exitcode.EnvironmentError(err)
		}
		info, err := os.Stat(args[0])
		if err != nil {
			return exitcode.EnvironmentError(err)
		}
		fmt.Fprintf(cmd.OutOrStdout(), "%s: snapshot of %.1f MB saved after %.1f s\n", args[0], float64(info.Size())/1e6, time.Since(begun).Seconds())
		return nil
	}
	return cmd
}

func saveSnapshot(ctx context.Context, c control.Cluster, file string) error {
	executable, err := os.Executable()
	if err != nil {
		return err
	}
	return c.Etcd.AnyMember(ctx, func(member control.EtcdClient) error {
		cmd := exec.CommandContext(ctx, executable, "snapshot", "save", file)
		cmd.Args[0] = "etcdctl"
		cmd.Env = append(os.Environ(), member.Environment()...)
		output, err := cmd.CombinedOutput()
		if err == nil {
			return nil
		}
		os.Remove(file + ".part") // etcdctl's name for an unfinished snapshot
		lines := strings.Split(strings.TrimSpace(string(output)), "\n")
		return fmt.Errorf("snapshot: %w: %s", err, lines[len(lines)-1])
	})
}

func restoreCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "restore FILE",
		Short: "Restore etcd from a snapshot",
		Long: `Restore etcd from a snapshot. The command creates new data from the snapshot for each
member, stops all components, and starts them with a new etcd cluster on this data.
All writes after the snapshot are lost.

Revisions continue a billion higher, so that clients do not mistake old objects for
new ones. If a step fails, etcd gets its previous data back. The command refuses to
run while faults are active.`,
		Example: `  controlplane etcd restore /tmp/etcd.db`,
		Args:    cobra.ExactArgs(1),
	}
	dir, output := dirFlag(cmd), commandline.AddOutput(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		file, err := filepath.Abs(args[0])
		if err == nil {
			err = userfile.Check(file, snapshotMax)
		}
		if err != nil {
			return fmt.Errorf("%s: %w (pass a file that `controlplane etcd snapshot` has written)", args[0], err)
		}
		client, err := dial(*dir)
		if err != nil {
			return err
		}
		restored, err := client.RestoreEtcd(cmd.Context(), file)
		if err != nil {
			return exitcode.EnvironmentError(err)
		}
		w := cmd.OutOrStdout()
		return exitcode.EnvironmentError(output.Write(w, restored, func() error {
			_, err := fmt.Fprintf(w, "%s restored from %s; the control plane was down for %.1f s\n", strings.Join(restored.Members, ", "), file, restored.Down.Seconds())
			return err
		}))
	}
	return cmd
}
