package cli

import (
	"context"
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/stormglass/stormglass/internal/commandline"
	"github.com/stormglass/stormglass/internal/terminal"
	"github.com/stormglass/stormglass/loadgen/internal/run"
	"github.com/stormglass/stormglass/loadgen/internal/runmetrics"
	"github.com/stormglass/stormglass/loadgen/internal/runs"
	"github.com/stormglass/stormglass/loadgen/internal/runs/site"
	"github.com/stormglass/stormglass/loadgen/result"
)

func newServe() *cobra.Command {
	var o runmetrics.ServeOptions
	var output *commandline.Output
	cmd := &cobra.Command{
		Use:   "serve DIR...",
		Short: "Show recorded runs in a browser, and serve their metrics to Grafana",
		Long: `Serve web pages about recorded runs until Ctrl-C:

  - a list of all runs, comparisons and capacity searches, with filters and a search
  - the trends of their metrics
  - two to six runs overlaid in the same charts
  - the report of each run

Each DIR is the directory of a run, or a folder that contains such directories. The
list shows new and active runs as they change.

The same address serves the recorded metrics of the runs, and the results of the
built-in rules (recording rules and ALERTS), over the Prometheus query API. Use it as a
Prometheus data source in Grafana, or with promtool. Queries fail if folders contain
more than 50 runs (name single runs instead).

Each series has the label run with the name of the run's directory. Samples keep their
original times, so select these times in Grafana. With promtool, set --time. A query
without a time is evaluated at the end of the latest run.

The server is read-only. Its address must be a loopback address, unless you set
--observe-public. With this flag, unlike with 'loadgen observe', each request needs the
token in the printed URL.`,
		Example: `  loadgen serve runs
  loadgen serve runs/before runs/after --listen 127.0.0.1:9090
  promtool query instant --time 2026-11-21T10:17:00Z http://127.0.0.1:9090 'ALERTS'`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx, release, err := untilParentEnds(cmd.Context())
			if err != nil {
				return err
			}
			defer release()
			ctx, cancel := context.WithCancel(ctx)
			defer cancel()
			if err := servePages(ctx, &o, args); err != nil {
				return err
			}
			o.Version = run.Version()
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
	flags.BoolVar(&o.Public, "observe-public", false, "allow an address other than loopback in --listen; each request then needs the token in the printed URL")
	output = commandline.AddOutput(cmd)
	return cmd
}

// servePages sets the pages about the directories, and the runs that the query API serves.
func servePages(ctx context.Context, o *runmetrics.ServeOptions, dirs []string) error {
	index, err := openIndex(dirs)
	if err != nil {
		return err
	}
	for _, dir := range dirs {
		if ours, err := result.IsRunDir(dir); err == nil && ours {
			o.Dirs = append(o.Dirs, dir)
		}
	}
	if len(o.Dirs) < len(dirs) {
		o.Later = func() map[string]string { return recordedIn(ctx, index, o.Dirs) }
	}
	o.Pages = site.NewServer(ctx, index)
	return nil
}

// openIndex returns the index of directories. The paths of entries begin with the name of their directory, unless dirs is
// a single folder of runs.
func openIndex(dirs []string) (*runs.Index, error) {
	names, err := runmetrics.UniqueNames(dirs)
	if err != nil {
		return nil, err
	}
	if len(dirs) == 1 {
		if ours, err := result.IsRunDir(dirs[0]); err == nil && !ours {
			names[0] = ""
		}
	}
	return runs.Open(dirs, names)
}

// recordedIn returns the directories of the runs that have ended, by their path in the index. It omits the directories in
// `without`.
func recordedIn(ctx context.Context, index *runs.Index, without []string) map[string]string {
	index.Scan(ctx)
	all := map[string]string{}
	for _, e := range index.Snapshot().Entries {
		if e.Kind == runs.Run && !e.Ended.IsZero() && !slices.Contains(without, e.Dir) {
			all[e.Path] = e.Dir
		}
	}
	return all
}

func printServed(w io.Writer, url string, runs []runmetrics.Served) error {
	fmt.Fprintf(w, "Open %s/ in a browser to see the runs\n\nPrometheus' query API is at %s\n\n", url, url)
	if len(runs) == 0 {
		return nil
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "RUN\tFROM\tTO\tGRAFANA'S TIME RANGE")
	for _, r := range runs {
		fmt.Fprintf(t, "%s\t%s\t%s\tfrom=%d&to=%d\n", terminal.Clean(r.Name), r.Start.Format(time.RFC3339), r.End.Format(time.RFC3339), r.Start.UnixMilli(), r.End.UnixMilli())
	}
	return t.Flush()
}
