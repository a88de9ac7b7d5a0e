package cli

import (
	"errors"
	"io"
	"os"
	"runtime/debug"
	"time"

	"github.com/spf13/cobra"

	"github.com/stormglass/stormglass/internal/commandline"
	"github.com/stormglass/stormglass/internal/exitcode"
	"github.com/stormglass/stormglass/loadgen/internal/recording/capture"
)

func newRecord() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "record",
		Short: "Record the requests to a cluster, to replay them as load",
		Long: `Make a recording: a file of the requests that clients sent to a cluster. A load of kind
"replay" sends these requests again, to any control plane.

docs/reference/recordings.md describes the format and the omitted requests.`,
	}
	cmd.AddCommand(newRecordAudit(), newRecordCluster(), newRecordSimKube(), newRecordCompare())
	return cmd
}

type recordFlags struct {
	out       string
	keepNames bool
	output    *commandline.Output
}

func (f *recordFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.out, "out", "", "new `file` for the recording; compressed if the name ends in .gz")
	cmd.Flags().BoolVar(&f.keepNames, "keep-names", false, "keep the names of users, namespaces and objects instead of hashes")
	f.output = commandline.AddOutput(cmd)
}

func (f *recordFlags) check() error {
	if f.out == "" {
		return exitcode.Usagef("--out is missing (specify the recording's file, for example --out storm.recording.gz)")
	}
	if err := commandline.NewFile(f.out); err != nil {
		return exitcode.Usagef("--out %w", err)
	}
	return nil
}

func (f *recordFlags) show(w io.Writer, r *capture.Result) error {
	return showAs(w, f.output, exitcode.Pass, r, func() error {
		return capture.WriteText(w, r)
	})
}

func newRecordAudit() *cobra.Command {
	var o capture.AuditOptions
	var f recordFlags
	var from, to string
	cmd := &cobra.Command{
		Use:   "audit LOG...",
		Short: "Make a recording from audit logs",
		Long: `Make a recording from audit logs: events of audit.k8s.io/v1 (or v1beta1) as JSON, one
per line, plain or gzip; - is standard input. The audit level Metadata is enough. The
command merges rotated logs and the logs of several API servers of one cluster.

The recording omits the requests of kubelets, kube-scheduler, kube-controller-manager,
kube-proxy and API servers, because these programs or the simulated nodes also send
requests during a replay. The command prints the percentage of omitted requests.

The recording contains no request bodies. Hashes with a random key replace the names of
users, namespaces and objects, and the values in selectors. The key is not stored.
Equal names have equal hashes.`,
		Example: `  loadgen record audit node-a/*.log.gz node-b/*.log.gz --out tuesday.recording.gz
  zcat audit.log.gz | loadgen record audit - --out ten-minutes.recording.gz --from 2026-11-24T10:00:00Z --to 2026-11-24T10:10:00Z`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if err := errors.Join(f.check(), timeFlag("--from", from, &o.From), timeFlag("--to", to, &o.To), checkOrder(&o)); err != nil {
				return err
			}
			if os.Getenv("GOGC") == "" {
				debug.SetGCPercent(auditGCPercent)
			}
			o.Logs, o.Stdin, o.Out, o.KeepNames = args, cmd.InOrStdin(), f.out, f.keepNames
			r, err := capture.Audit(cmd.Context(), o)
			if err != nil {
				return err
			}
			return f.show(cmd.OutOrStdout(), r)
		},
	}
	f.add(cmd)
	cmd.Flags().StringVar(&from, "from", "", "`time` at which the recording begins, for example 2026-11-24T10:00:00Z (default: the beginning of the logs)")
	cmd.Flags().StringVar(&to, "to", "", "`time` at which the recording ends (default: the end of the logs)")
	cmd.Flags().BoolVar(&o.KeepSystem, "keep-system", false, "keep the requests of kubelets and control plane components")
	return cmd
}

// auditGCPercent is the GOGC of a recording. It is low, so garbage collections are frequent: a recording keeps only a
// few bytes of each request, so most of its heap is garbage.
const auditGCPercent = 20

func timeFlag(flag, text string, into *time.Time) error {
	if text == "" {
		return nil
	}
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return exitcode.Usagef("%s %q is not a time (write it as 2026-11-24T10:00:00Z)", flag, text)
	}
	*into = at
	return nil
}

func checkOrder(o *capture.AuditOptions) error {
	if !o.From.IsZero() && !o.To.IsZero() && !o.From.Before(o.To) {
		return exitcode.Usagef("--from is not before --to")
	}
	return nil
}
