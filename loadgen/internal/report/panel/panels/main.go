// Panels runs every query of every dashboard on the archive of a run. It reports panels without data, unless a
// documented reason applies, and panels that claim to show a fault but do not. The latter is not an error: with long
// timers, for example, a frozen leader stays leader, so the fault has no effect.
//
//	go run ./loadgen/internal/report/panel/panels [-v] [-calm] RUN
//
// RUN is the directory of a run. Exit codes: 0 no problem, 1 problems, 2 the
// directory cannot be read. With -v it reports every query. With -calm it instead
// counts the panels that seem to show a fault in the longest phase without faults
// and load changes. This shows how often panels move by chance.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/stormglass/stormglass/loadgen/internal/report/panel"
	"github.com/stormglass/stormglass/loadgen/internal/rundir"
)

func main() { os.Exit(run(context.Background(), os.Args[1:], os.Stdout, os.Stderr)) }

func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	flags := flag.NewFlagSet("panels", flag.ContinueOnError)
	flags.SetOutput(stderr)
	verbose := flags.Bool("v", false, "report every query")
	quiet := flags.Bool("calm", false, "report how many panels move by chance")
	if err := flags.Parse(args); err != nil {
		return 2
	}
	if flags.NArg() != 1 {
		fmt.Fprintln(stderr, "usage: panels [-v] [-calm] RUN")
		return 2
	}
	wrong, err := tell(ctx, flags.Arg(0), *quiet, *verbose, stdout)
	switch {
	case err != nil:
		fmt.Fprintln(stderr, err)
		return 2
	case wrong > 0:
		return 1
	}
	return 0
}

// tell prints the requested report on the run in dir. It returns the number of queries with a problem.
func tell(ctx context.Context, dir string, quiet, verbose bool, out io.Writer) (wrong int, err error) {
	rec, err := rundir.Open(dir)
	if err != nil {
		return 0, err
	}
	defer rec.Close()
	run, err := panel.Recorded(rec)
	if err != nil {
		return 0, err
	}
	if quiet {
		return 0, calm(ctx, rec, run, out)
	}
	return check(ctx, rec, run, verbose, out)
}

// calm prints how many panels of a run move by chance. Its invented causes, and the times before them, are as long as
// is usual in the scenarios.
func calm(ctx context.Context, rec *rundir.Recorded, run panel.Run, out io.Writer) error {
	seen, looked := 0, 0
	for _, d := range [][2]time.Duration{{30 * time.Second, 60 * time.Second}, {30 * time.Second, 140 * time.Second}, {60 * time.Second, 100 * time.Second}} {
		s, n, err := panel.Calm(ctx, rec.Archive, run, d[0], d[1])
		if err != nil {
			return err
		}
		seen, looked = seen+s, looked+n
	}
	fmt.Fprintf(out, "without any cause, %d of %d panels moved (%.1f%%)\n", seen, looked, 100*float64(seen)/float64(max(looked, 1)))
	return nil
}

// check prints the problems of the panels in a run, and returns the number of queries with a problem.
func check(ctx context.Context, rec *rundir.Recorded, run panel.Run, verbose bool, out io.Writer) (wrong int, err error) {
	checked, err := panel.Check(ctx, rec.Archive, run.Span)
	if err != nil {
		return 0, err
	}
	excused := 0
	for _, c := range checked {
		if c.Problem != "" {
			wrong++
		}
		if c.Excuse != "" {
			excused++
		}
		if verbose || c.Problem != "" {
			fmt.Fprintln(out, c)
		}
	}
	unseen := 0
	motions, err := panel.Moved(ctx, rec.Archive, run)
	if err != nil {
		return 0, err
	}
	for _, m := range motions {
		if !m.Seen {
			unseen++
			fmt.Fprint(out, "not seen: ")
		}
		if verbose || !m.Seen {
			fmt.Fprintln(out, m)
		}
	}
	fmt.Fprintf(out, "%d queries: %d have data, %d have an accepted reason for no data, %d are wrong; %d of %d panels about faults show them\n",
		len(checked), len(checked)-excused-wrong, excused, wrong, len(motions)-unseen, len(motions))
	return wrong, nil
}
