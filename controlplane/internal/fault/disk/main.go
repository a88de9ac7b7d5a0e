package disk

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os/signal"
	"strconv"
	"syscall"
)

// Program is the neighbour's name in the multi-call binary.
const Program = "disk-neighbour"

// ReadyLine is printed by Main when all writers have begun (Options.Ready).
const ReadyLine = "disk-neighbour: writing"

// Args are the arguments of Main that mean the options.
func Args(o Options) []string {
	return []string{"--dir", o.Dir, "--writers", strconv.Itoa(o.Writers), "--size", strconv.FormatInt(o.Size, 10)}
}

// Main is the program. It writes until SIGTERM or SIGINT, prints ReadyLine when
// it is at it and a line of Stats as JSON at the end. Exit codes: 0 ended by
// a signal, 2 usage, 4 it could not write.
func Main(args []string, stdout, stderr io.Writer) int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	return run(ctx, args, stdout, stderr)
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	o := Options{Ready: func() { fmt.Fprintln(stdout, ReadyLine) }}
	flags := flag.NewFlagSet(Program, flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.StringVar(&o.Dir, "dir", "", "directory to write in")
	flags.IntVar(&o.Writers, "writers", DefaultWriters, "writers, each a file of its own")
	flags.Int64Var(&o.Size, "size", DefaultSize, "bytes that a writer writes before it fsyncs")
	switch err := flags.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil: // flag has said it
		return 2
	case flags.NArg() > 0:
		fmt.Fprintf(stderr, "%s: takes no arguments, got %q\n", Program, flags.Arg(0))
		return 2
	case o.Dir == "":
		fmt.Fprintf(stderr, "%s: --dir is needed\n", Program)
		return 2
	}
	stats, err := Run(ctx, o)
	if err != nil {
		fmt.Fprintln(stderr, err)
		return 4
	}
	if err := json.NewEncoder(stdout).Encode(stats); err != nil {
		fmt.Fprintln(stderr, err)
		return 4
	}
	return 0
}
