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
	"github.com/stormglass/stormglass/loadgen/internal/trace/recording"
)

func newRecord() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "record",
		Short: "Make a trace of the requests to a cluster, to replay as load",
		Long: `Make a trace of the requests that clients sent to a cluster. A load of kind
"replay" sends the same requests to a control plane that Stormglass started, or to
another cluster.

docs/reference/traces.md describes the format, and the requests that are left out.`,
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
	cmd.Flags().StringVar(&f.out, "out", "", "new `file` for the trace; a name that ends in .gz means compressed")
	cmd.Flags().BoolVar(&f.keepNames, "keep-names", false, "keep the names of users, namespaces and objects (default: hashes of them)")
	f.output = commandline.AddOutput(cmd)
}

func (f *recordFlags) check() error {
	if f.out == "" {
		return exitcode.Usagef("--out is missing (name the trace's file, for example --out storm.trace.gz)")
	}
	if err := commandline.NewFile(f.out); err != nil {
		return exitcode.Usagef("--out %w", err)
	}
	return nil
}

func (f *recordFlags) show(w io.Writer, r *recording.Recording) error {
	return showAs(w, f.output, exitcode.Pass, r, func() error {
		return recording.WriteText(w, r)
	})
}

func newRecordAudit() *cobra.Command {
	var o recording.AuditOptions
	var f recordFlags
	var from, to string
	cmd := &cobra.Command{
		Use:   "audit LOG...",
		Short: "Make a trace from audit logs",
		Long: `Make a trace from audit logs: events of audit.k8s.io/v1 (or v1beta1) as JSON, one per
line, plain or compressed with gzip; "-" is standard input. Level Metadata is enough.
The logs of several API servers of one cluster, and rotated ones, are merged by time.

Requests of kubelets, kube-scheduler, kube-controller-manager, kube-proxy and API servers
are left out, because during a replay the control plane and the simulated nodes send
their own; the share of these requests is printed. Names of users, namespaces and
objects, and values in selectors, are replaced by hashes with a key that is thrown away;
equal names stay equal. No bodies are kept.`,
		Example: `  loadgen record audit audit.log --out tuesday.trace.gz
  loadgen record audit node-a/*.log.gz node-b/*.log.gz --out tuesday.trace.gz
  zcat audit.log.gz | loadgen record audit - --out ten-minutes.trace.gz --from 2026-11-24T10:00:00Z --to 2026-11-24T10:10:00Z`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if err := errors.Join(f.check(), timeFlag("--from", from, &o.From), timeFlag("--to", to, &o.To), checkOrder(&o)); err != nil {
				return err
			}
			if os.Getenv("GOGC") == "" {
				debug.SetGCPercent(auditGCPercent)
			}
			o.Logs, o.Stdin, o.Out, o.KeepNames = args, cmd.InOrStdin(), f.out, f.keepNames
			r, err := recording.Audit(cmd.Context(), o)
			if err != nil {
				return err
			}
			return f.show(cmd.OutOrStdout(), r)
		},
	}
	f.add(cmd)
	cmd.Flags().StringVar(&from, "from", "", "record from this `time` on, for example 2026-11-24T10:00:00Z (default: the logs' beginning)")
	cmd.Flags().StringVar(&to, "to", "", "record until this `time` (default: the logs' end)")
	cmd.Flags().BoolVar(&o.KeepSystem, "keep-system", false, "keep the requests of the control plane's components and of kubelets")
	return cmd
}

// auditGCPercent makes garbage collections more frequent. A recording keeps only a few bytes of each request, so most of
// its heap is garbage.
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

func checkOrder(o *recording.AuditOptions) error {
	if !o.From.IsZero() && !o.To.IsZero() && !o.From.Before(o.To) {
		return exitcode.Usagef("--from is not before --to")
	}
	return nil
}
