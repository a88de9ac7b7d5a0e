package cli

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/stormglass/stormglass/internal/exitcode"
	"github.com/stormglass/stormglass/loadgen/internal/cluster"
	"github.com/stormglass/stormglass/loadgen/internal/recording/capture"
)

// Limits for how long a cluster can be recorded.
const (
	minRecording = time.Second
	maxRecording = 24 * time.Hour
)

func newRecordCluster() *cobra.Command {
	var o capture.ClusterOptions
	var f recordFlags
	var kubeconfig kubeconfigFlags
	var at cluster.Kubeconfig
	cmd := &cobra.Command{
		Use:   "cluster",
		Short: "Make a recording of the writes to a cluster, without audit logs",
		Long: `Make a recording of the writes to a cluster whose audit log is not available. The
command counts objects by resource and namespace, and the pods of each node. Then it
watches which objects are created, changed and deleted. The recording contains no
reads. It identifies a client only by its field manager in the managedFields of objects.

The command changes nothing in the cluster. It lists and watches the metadata of
objects. To learn their sizes, it also reads 50 whole objects of each resource except
Secrets. It needs --kubeconfig or --current-cluster.`,
		Example: `  loadgen record cluster --kubeconfig ~/.kube/config --for 10m --out cluster.recording.gz`,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			err := f.check()
			if at.Files == "" && !kubeconfig.current {
				err = errors.Join(err, exitcode.Usagef("--kubeconfig is missing (name the kubeconfig of the cluster to record)"))
			} else {
				err = errors.Join(err, kubeconfig.into(cmd, &at))
			}
			if o.For < minRecording || o.For > maxRecording {
				err = errors.Join(err, exitcode.Usagef("--for %s is out of bounds (from %s to %s)", o.For, minRecording, maxRecording))
			}
			if err != nil {
				return err
			}
			ui := newTUI(cmd)
			cfg, name, err := cluster.Reach(cmd.Context(), at, ui.Step)
			if err != nil {
				return errors.Join(err, cmd.Context().Err())
			}
			ui.Step(fmt.Sprintf("cluster %s (%s)", name, cfg.Host))
			o.Out, o.KeepNames, o.Step = f.out, f.keepNames, ui.Step
			r, err := capture.Cluster(cmd.Context(), cfg, o)
			ui.done()
			if err != nil {
				return err
			}
			return f.show(cmd.OutOrStdout(), r)
		},
	}
	f.add(cmd)
	kubeconfig.add(cmd.Flags(), &at)
	cmd.Flags().Lookup("kubeconfig").Usage = "kubeconfig `file` of your cluster"
	cmd.Flags().DurationVar(&o.For, "for", 10*time.Minute, "`time` to watch for changes")
	cmd.Flags().BoolVar(&o.KeepSystem, "keep-system", false, "keep the changes by kubelets and control plane components")
	return cmd
}

func newRecordSimKube() *cobra.Command {
	var o capture.SimKubeOptions
	var f recordFlags
	cmd := &cobra.Command{
		Use:   "simkube FILE",
		Short: "Convert a trace of SimKube",
		Long: `Convert a SimKube trace (format version 2, .sktrace or JSON) to a recording. The first
apply of an object becomes a create, and later applies become updates. Times are whole
seconds. The recording contains only the sizes of bodies, and no lifecycles of pods.`,
		Example: `  loadgen record simkube cronjob.sktrace --out cronjob.recording.gz`,
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := f.check(); err != nil {
				return err
			}
			o.File, o.Out, o.KeepNames = args[0], f.out, f.keepNames
			r, err := capture.SimKube(cmd.Context(), o)
			if err != nil {
				return err
			}
			return f.show(cmd.OutOrStdout(), r)
		},
	}
	f.add(cmd)
	return cmd
}
