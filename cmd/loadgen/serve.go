package main

import (
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/stormglass/stormglass/internal/commandline"
	"github.com/stormglass/stormglass/loadgen"
)

func newServe() *cobra.Command {
	var o loadgen.ServeOptions
	var output *commandline.Output
	cmd := &cobra.Command{
		Use:   "serve DIR...",
		Short: "Serve recorded runs to Grafana by Prometheus' query API",
		Long: `Serve what runs recorded, and what the rules that ship make of it (records, ALERTS), by
the query API of Prometheus until Ctrl-C: a Prometheus data source for Grafana, and for
promtool. Each series has the label run, the name of its run's directory, so that several
runs can be set side by side.

It is read-only: the runs' directories are not changed. It has no password, and listens
on this machine only, unless --observe-public allows otherwise. Samples have the times
at which they were recorded: choose those in Grafana. A query without a time is evaluated
at the end of the latest run; promtool always sends one, so give it --time.`,
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
			o.Dirs = args
			var printing error
			o.Ready = func(url string, runs []loadgen.ServedRun) {
				printing = output.Write(cmd.OutOrStdout(), map[string]any{"url": url, "runs": runs}, func() error { return printServed(cmd.OutOrStdout(), url, runs) })
			}
			if err := loadgen.Serve(ctx, o); err != nil {
				return err
			}
			return printing
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&o.Addr, "listen", anyPort, "`address` to serve at; port 0 takes a free one")
	addPublicFlag(flags, &o.Public)
	output = commandline.AddOutput(cmd)
	return cmd
}

func printServed(w io.Writer, url string, runs []loadgen.ServedRun) error {
	fmt.Fprintf(w, "Prometheus' query API is at %s\n\n", url)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "RUN\tFROM\tTO\tGRAFANA'S TIME RANGE")
	for _, r := range runs {
		fmt.Fprintf(t, "%s\t%s\t%s\tfrom=%d&to=%d\n", r.Name, r.Start.Format(time.RFC3339), r.End.Format(time.RFC3339), r.Start.UnixMilli(), r.End.UnixMilli())
	}
	return t.Flush()
}
