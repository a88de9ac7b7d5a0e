// Panels asks every query of every dashboard of the archive of a run, and tells
// which panels have no data without a good reason, and which do not show a
// fault that they are about: that may be what a scenario is to show (a frozen
// leader that long timers keep), so it is told and no error.
//
//	go run ./loadgen/panel/panels [-v] RUN
//
// RUN is the directory of a run. Exit codes: 0 all is well, 1 it is not, 2 the
// directory cannot be read. With -v it tells of every query.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"

	"github.com/stormglass/stormglass/loadgen/panel"
	"github.com/stormglass/stormglass/loadgen/record"
)

func main() { os.Exit(run(context.Background(), os.Args[1:], os.Stdout, os.Stderr)) }

func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	flags := flag.NewFlagSet("panels", flag.ContinueOnError)
	flags.SetOutput(stderr)
	verbose := flags.Bool("v", false, "tell of every query")
	if err := flags.Parse(args); err != nil {
		return 2
	}
	if flags.NArg() != 1 {
		fmt.Fprintln(stderr, "usage: panels [-v] RUN")
		return 2
	}
	wrong, err := check(ctx, flags.Arg(0), *verbose, stdout)
	switch {
	case err != nil:
		fmt.Fprintln(stderr, err)
		return 2
	case wrong > 0:
		return 1
	}
	return 0
}

// check tells of the run in dir, and returns how much is wrong.
func check(ctx context.Context, dir string, verbose bool, out io.Writer) (wrong int, err error) {
	run, err := panel.ReadRun(dir)
	if err != nil {
		return 0, err
	}
	archive, err := record.OpenArchive(dir)
	if err != nil {
		return 0, err
	}
	defer archive.Close()
	source := panel.Of(archive)
	checked, err := panel.Check(ctx, source, run.Span)
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
	motions, err := panel.Moved(ctx, source, run.Span, run.Faults)
	if err != nil {
		return 0, err
	}
	for _, m := range motions {
		if !m.Seen() {
			unseen++
			fmt.Fprint(out, "not seen: ")
		}
		if verbose || !m.Seen() {
			fmt.Fprintln(out, m)
		}
	}
	fmt.Fprintf(out, "%d queries: %d have data, %d a reason to have none, %d are wrong; %d of %d panels about faults show them\n",
		len(checked), len(checked)-excused-wrong, excused, wrong, len(motions)-unseen, len(motions))
	return wrong, nil
}
