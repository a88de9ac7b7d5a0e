package cli

import (
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/stormglass/stormglass/internal/commandline"
	"github.com/stormglass/stormglass/internal/terminal"
	"github.com/stormglass/stormglass/loadgen/internal/run"
	"github.com/stormglass/stormglass/loadgen/internal/runmetrics"
)

func newServe() *cobra.Command {
	var o runmetrics.ServeOptions
	var output *commandline.Output
	cmd := &cobra.Command{
		Use:   "serve DIR...",
		Short: "Serve recorded runs to Grafana over the Prometheus query API",
		Long: `Serve the recorded metrics of runs, and the results of the built-in rules (recording
rules and ALERTS), over the Prometheus query API until Ctrl-C. Use this server as a
Prometheus data source in Grafana, or with promtool. Each series has the label run
with the name of the run's directory.

Samples keep their original times, so select these times in Grafana. With promtool,
set --time. A query without a time is evaluated at the end of the latest run.

The server is read-only and has no password. It listens only on this machine, unless
you set --observe-public.`,
		Example: `  loadgen serve runs/*
  loadgen serve runs/before runs/after --listen 127.0.0.1:9090
  promtool query instant --time 2026-11-21T10:17:00Z http://127.0.0.1:9090 'ALERTS'`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx, release, err := untilParentEnds(cmd.Context())
			if err != nil {
				return err
			}
			defer release()
			o.Dirs, o.Version = args, run.Version()
			var printing error
			o.Ready = func(url string, runs []runmetrics.Served) {
				printing = output.Write(cmd.OutOrStdout(), map[string]any{"url": url, "runs": runs}, func() error { return printServed(cmd.OutOrStdout(), url, runs) })
			}
			if err := runmetrics.Serve(ctx, o); err != nil {
				return err
			}
			return printing
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&o.Addr, "listen", anyPort, "`address` of the server; port 0 means a free port")
	addPublicFlag(flags, &o.Public)
	output = commandline.AddOutput(cmd)
	return cmd
}

func printServed(w io.Writer, url string, runs []runmetrics.Served) error {
	fmt.Fprintf(w, "Prometheus' query API is at %s\n\n", url)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "RUN\tFROM\tTO\tGRAFANA'S TIME RANGE")
	for _, r := range runs {
		fmt.Fprintf(t, "%s\t%s\t%s\tfrom=%d&to=%d\n", terminal.Clean(r.Name), r.Start.Format(time.RFC3339), r.End.Format(time.RFC3339), r.Start.UnixMilli(), r.End.UnixMilli())
	}
	return t.Flush()
}
