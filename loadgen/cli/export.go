package cli

import (
	"errors"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/stormglass/stormglass/internal/exitcode"
	"github.com/stormglass/stormglass/loadgen/internal/runmetrics"
)

func newExport() *cobra.Command {
	var o exportOptions
	var out string
	var receiver remoteWriteFlags
	cmd := &cobra.Command{
		Use:   "export DIR --format FORMAT",
		Short: "Export the metrics of a recorded run to Prometheus",
		Long: `Export the recorded metrics of a run in one of these formats:

  openmetrics   text with timestamps, to standard output or to --out FILE, for
                promtool tsdb create-blocks-from openmetrics and other readers
  blocks        Prometheus TSDB blocks, aligned to two hours, in the directory --out.
                Copy them to a Prometheus data directory, Thanos or Mimir
  remote-write  samples sent to the receiver at --remote-write URL. A Prometheus accepts
                old samples only within its storage.tsdb.out_of_order_time_window

Each series gets the label run with the name of the run's directory; --label run=
removes it. OpenMetrics has no staleness markers. Therefore, after a series has ended,
queries show its last value for five more minutes. The run's directory is not changed.`,
		Example: `  loadgen export runs/20261121-101500-slow-fsync --format openmetrics --out run.txt
  loadgen export runs/20261121-101500-slow-fsync --format blocks --out data --label cluster=lab
  loadgen export runs/20261121-101500-slow-fsync --format remote-write --remote-write http://127.0.0.1:9090/api/v1/write`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := errors.Join(checkExport(o, out, receiver.config.URL), checkLabels("--label", o.Labels), receiver.check()); err != nil {
				return err
			}
			o.Dir, o.Receiver, o.Writer = out, receiver.config, cmd.OutOrStdout()
			o.Receiver.Attempts = exportAttempts
			say := sayTo(progressTo(cmd))
			o.Log = say
			done, err := exportTo(cmd, args[0], o, out)
			if err != nil {
				return err
			}
			switch {
			case o.Format == runmetrics.Blocks:
				say("%d samples in %d blocks in %s", done.Samples, done.Blocks, out)
			case o.Format == runmetrics.RemoteWrite:
				say("%d samples sent", done.Samples)
			case out != "":
				say("%d samples in %s", done.Samples, out)
			}
			return nil
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&o.Format, "format", "", "export `format`: openmetrics, blocks or remote-write")
	flags.StringVar(&out, "out", "", "new or empty `file` for openmetrics (default: standard output), or directory for blocks")
	flags.StringToStringVar(&o.Labels, "label", nil, "`label` to add to each series, for example cluster=lab (repeatable)")
	flags.Lookup("label").DefValue = ""
	flags.StringVar(&o.Start, "start", "", "export only samples from this `time` on, for example 90s (since the first scrape), 14:00:00 (UTC) or 2026-11-21T14:00:00Z")
	flags.StringVar(&o.End, "end", "", "export only samples up to this `time`, in the forms of --start")
	flags.BoolVar(&o.Rules, "rules", false, "also export the results of the built-in recording rules and alerts (ALERTS)")
	receiver.add(flags)
	return cmd
}

// exportAttempts is the maximum number of attempts to send a request. If the receiver is unreachable, all attempts
// together take two minutes.
const exportAttempts = 15

// exportTo exports to the file `out`, or to the destination in o. If the export fails, it removes the incomplete file.
func exportTo(cmd *cobra.Command, dir string, o exportOptions, out string) (done runmetrics.Exported, err error) {
	if o.Format != runmetrics.OpenMetrics || out == "" {
		return exportRun(cmd.Context(), dir, o)
	}
	if info, err := os.Stat(out); err == nil && info.Mode().IsRegular() && info.Size() > 0 {
		return done, exitcode.Usagef("--out: %s exists and is not empty (choose another file, or remove it)", out)
	}
	f, err := openOutput("--out", out, os.O_CREATE|os.O_TRUNC)
	if err != nil {
		return done, err
	}
	o.Writer = f
	done, err = exportRun(cmd.Context(), dir, o)
	if err = errors.Join(err, f.Close()); err != nil {
		if info, statErr := os.Lstat(out); statErr == nil && info.Mode().IsRegular() {
			err = errors.Join(err, os.Remove(out))
		}
	}
	return done, err
}

// checkExport returns an error if a required option is missing, or if an option would have no effect.
func checkExport(o exportOptions, out, url string) error {
	switch o.Format {
	case "":
		return exitcode.Usagef("--format is missing (openmetrics, blocks or remote-write)")
	case runmetrics.OpenMetrics, runmetrics.Blocks, runmetrics.RemoteWrite:
	default:
		return exitcode.Usagef("--format %q is unknown (openmetrics, blocks or remote-write)", o.Format)
	}
	remote := o.Format == runmetrics.RemoteWrite
	switch {
	case remote && url == "":
		return exitcode.Usagef("--format remote-write requires a receiver (add --remote-write URL)")
	case remote && out != "":
		return exitcode.Usagef("--out does not apply to --format remote-write, which sends to a URL (leave out --out)")
	case !remote && url != "":
		return exitcode.Usagef("--remote-write does not apply to --format %s, which writes files (remove one of them)", o.Format)
	case o.Format == runmetrics.Blocks && out == "":
		return exitcode.Usagef("--format blocks requires a directory (add --out DIR)")
	}
	return nil
}

func checkLabels(flag string, labels map[string]string) error {
	for _, name := range slices.Sorted(maps.Keys(labels)) {
		if name == "" || strings.HasPrefix(name, "__") || strings.Trim(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") != "" || name[0] >= '0' && name[0] <= '9' {
			return exitcode.Usagef("%s %q is not a label name (letters, digits and _, for example cluster=lab)", flag, name)
		}
	}
	return nil
}
