// Package runner has the common code of programs that measure the quality of Stormglass with many runs of loadgen.
package runner

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
)

// Runner runs the binary Loadgen and stores its output in the directory Dir. It does not repeat completed runs in Dir.
type Runner struct {
	Dir, Loadgen string
	Run          bool // run loadgen for results that are missing in Dir; if false, only read Dir
}

// Flags registers the flags of a Runner.
func (r *Runner) Flags(dir string) {
	flag.StringVar(&r.Dir, "dir", dir, "`directory` of the runs; completed runs in it are not repeated")
	flag.StringVar(&r.Loadgen, "loadgen", "bin/loadgen", "the `binary`")
	flag.BoolVar(&r.Run, "run", true, "run the missing runs; if false, only print the existing results")
}

// Main runs a program. Its context ends at an interrupt. If the program fails, Main prints the error and ends the
// process.
func Main(name string, program func(context.Context) error) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := program(ctx); err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
		os.Exit(1)
	}
}

// Do runs loadgen with the given arguments and writes its output to the file NAME.log in Dir. Do returns nil for the
// exit codes 0, 1 and 3, which are verdicts.
func (r Runner) Do(ctx context.Context, name string, args ...string) error {
	if err := os.MkdirAll(r.Dir, 0o755); err != nil {
		return err
	}
	err := Verdict(Run(ctx, "", filepath.Join(r.Dir, name+".log"), r.Loadgen, args...))
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// Run runs a program in the directory dir, and writes its output to the file log.
func Run(ctx context.Context, dir, log, binary string, args ...string) error {
	f, err := os.Create(log)
	if err != nil {
		return err
	}
	defer f.Close()
	cmd := exec.CommandContext(ctx, binary, args...)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, f, f
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s: %w (%s)", filepath.Base(binary), err, log)
	}
	return nil
}

// Verdict returns nil if err is an exit code of loadgen that is a verdict: 1 or 3. Otherwise it returns err.
func Verdict(err error) error {
	if exit, ok := errors.AsType[*exec.ExitError](err); ok && (exit.ExitCode() == 1 || exit.ExitCode() == 3) {
		return nil
	}
	return err
}

// Busy starts n processes that each keep a processor busy, and returns a function that ends them.
func Busy(ctx context.Context, n int) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var all []*exec.Cmd
	for range n {
		cmd := exec.CommandContext(ctx, "sh", "-c", "while :; do :; done")
		if cmd.Start() == nil {
			all = append(all, cmd)
		}
	}
	return func() {
		cancel()
		for _, cmd := range all {
			_ = cmd.Wait() // it was killed
		}
	}
}

// Share formats the share of n in `of`, such as "3 of 4 (75.0%)".
func Share(n, of int) string {
	if of == 0 {
		return "0 of 0"
	}
	return fmt.Sprintf("%d of %d (%.1f%%)", n, of, 100*float64(n)/float64(of))
}
