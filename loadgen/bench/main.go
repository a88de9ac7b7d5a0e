// Bench measures what the load engine costs beside the obvious alternative,
// client-go, on the same work in the same minutes:
//
//	go run ./loadgen/bench -only watch,requests
//
// A third side is net/http, over the transport that client-go makes, with the same
// scanner of undecoded answers: what it costs more than ours is the gain of the HTTP/2
// client alone, and what client-go costs more than it is that of not decoding.
//
// Each measurement is a process of its own, against a stub API server in yet
// another one, so only the client is counted: CPU time by getrusage, memory
// after a garbage collection. Sides take turns (ours, theirs, ours, theirs), so
// a machine that slows down slows both. Printed are medians and, over the
// pairs, the ratio: median, least and most. CPU seconds, not wall time: what
// else runs on the machine costs it little. Simulated nodes have no counterpart
// in client-go: their two fidelities stand side by side.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"

	"github.com/stormglass/stormglass/internal/stubapi"
)

// runEnv tells a process which measurement it is, as JSON.
const runEnv = "STORMGLASS_BENCH_RUN"

func main() {
	stubapi.ChildMain()
	os.Exit(run(context.Background(), os.Args[1:], os.Stdout, os.Stderr))
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	if text := os.Getenv(runEnv); text != "" {
		return measure(ctx, text, stdout, stderr)
	}
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.SetOutput(stderr)
	only := flags.String("only", "", "comma-separated beginnings of the names of benchmarks; empty: all")
	pairs := flags.Int("pairs", 5, "how many times each side is measured")
	watches := flags.Int("watches", 1000, "watches of one process")
	writes := flags.Int("writes", 50, "writes, each an event of every watch")
	requests := flags.Int("requests", 10000, "requests of one measurement")
	if err := flags.Parse(args); err != nil {
		return 2
	}
	var names []string
	found := false
	for _, c := range cases() {
		names = append(names, c.name)
		if !wanted(c.name, *only) {
			continue
		}
		found = true
		job := job{Case: c.name, Watches: *watches, Writes: *writes, Requests: *requests}
		if err := compare(ctx, c, job, *pairs, stdout, stderr); err != nil {
			fmt.Fprintf(stderr, "bench: %s: %v\n", c.name, err)
			return 1
		}
	}
	if !found {
		fmt.Fprintf(stderr, "bench: -only %s: no name begins so; there are %s\n", *only, strings.Join(names, ", "))
		return 2
	}
	return 0
}

func wanted(name, only string) bool {
	for _, beginning := range strings.Split(only, ",") {
		if strings.HasPrefix(name, beginning) {
			return true
		}
	}
	return false
}

// job is one measurement.
type job struct {
	Case, Side                string
	Watches, Writes, Requests int
}

// figure is one number that a measurement gives; less is better.
type figure struct {
	Name  string
	Unit  string
	Value float64
}

// benchmark is work that several sides do; the first is ours.
type benchmark struct {
	name, what string
	ratio      string // of what; empty: theirs / ours
	sides      []side
}

type side struct {
	name string
	run  func(ctx context.Context, j job) ([]figure, error)
}

// measure is the process of one measurement.
func measure(ctx context.Context, text string, stdout, stderr io.Writer) int {
	var j job
	if err := json.Unmarshal([]byte(text), &j); err != nil {
		fmt.Fprintln(stderr, "bench:", err)
		return 1
	}
	for _, c := range cases() {
		for _, s := range c.sides {
			if c.name != j.Case || s.name != j.Side {
				continue
			}
			figures, err := s.run(ctx, j)
			if err == nil {
				err = json.NewEncoder(stdout).Encode(figures)
			}
			if err != nil {
				fmt.Fprintln(stderr, "bench:", err)
				return 1
			}
			return 0
		}
	}
	fmt.Fprintf(stderr, "bench: there is no %s of %s\n", j.Side, j.Case)
	return 1
}

// apart runs a measurement in a process of its own.
func apart(ctx context.Context, j job, stderr io.Writer) ([]figure, error) {
	path, err := os.Executable()
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(j)
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, path)
	cmd.Env = append(os.Environ(), runEnv+"="+string(text))
	cmd.Stderr = stderr
	var out bytes.Buffer
	cmd.Stdout = &out
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("%s: %w", j.Side, err)
	}
	var figures []figure
	if err := json.Unmarshal(out.Bytes(), &figures); err != nil {
		return nil, fmt.Errorf("%s: %w", j.Side, err)
	}
	return figures, nil
}
