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
	"time"

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

func cases() []benchmark {
	all := []benchmark{{
		name: "watch",
		what: "watches of one ConfigMap, 20 writes a second, events of 1.5 KB",
		sides: []side{
			{"ours", drain(ourWatches("json"))},
			{"net/http, our scanner", drain(newHTTPWatches)},
			{"client-go typed watch", drain(typedWatch(jsonType))},
			{"client-go informer", drain(newInformers)},
		},
	}, {
		name: "watch-protobuf",
		what: "the same in protobuf",
		sides: []side{
			{"ours", drain(ourWatches("protobuf"))},
			{"client-go typed watch", drain(typedWatch(protobufType))},
		},
	}}
	for _, c := range []struct {
		asked
		what string
	}{
		{asked{"get", 6000, 1}, "GET of a ConfigMap of 1 KB, 6,000 a second, open loop"},
		{asked{"get", 2000, 1}, "GET of a ConfigMap of 1 KB, 2,000 a second, open loop"},
		{asked{"patch", 2000, 1}, "merge patch of 1 KB, 2,000 a second, open loop"},
		{asked{"list", 200, 10}, "LIST of 100 ConfigMaps of 1 KB, 200 a second, open loop"},
	} {
		all = append(all, benchmark{name: fmt.Sprintf("requests-%s-%.0f", c.verb, c.perSecond), what: c.what, sides: []side{
			{"ours", c.against(ourRequests)},
			{"net/http, undecoded", c.against(theirs(httpCalls))},
			{"client-go typed", c.against(theirs(typedCalls))},
			{"client-go dynamic", c.against(theirs(dynamicCalls))},
		}})
	}
	for _, perSecond := range []float64{20_000, 30_000} {
		all = append(all, benchmark{
			name:  fmt.Sprintf("rate-%.0f", perSecond),
			what:  fmt.Sprintf("GET of 1 KB at %.0f a second, open loop, for 5 s", perSecond),
			sides: []side{{"ours", rate(asked{"get", perSecond, 1})}},
		})
	}
	return append(all, nodeCases()...)
}

func startStub(fill stubapi.ChildFill) (*stubapi.Child, error) {
	stub, err := stubapi.StartChild()
	if err != nil {
		return nil, err
	}
	fill.Namespace, fill.Prefix = namespace, object
	if err := stub.Fill(fill); err != nil {
		stub.Close()
		return nil, err
	}
	return stub, nil
}

// rate offers a rate for 5 s and says what of it was sent, how late, and at
// what cost.
func rate(a asked) func(context.Context, job) ([]figure, error) {
	const length = 5 * time.Second
	return func(ctx context.Context, _ job) ([]figure, error) {
		stub, err := startStub(stubapi.ChildFill{N: listed, Size: 1024})
		if err != nil {
			return nil, err
		}
		defer stub.Close()
		r, err := newLoad(ctx, a, stub)
		if err != nil {
			return nil, err
		}
		ctx, cancel := context.WithTimeout(ctx, length)
		defer cancel()
		used, err := costOf(func() error { return r.Run(ctx) })
		if err != nil {
			return nil, err
		}
		served, err := stub.Cost()
		if err != nil {
			return nil, err
		}
		all := r.Results()[""]
		if len(all) != 1 || all[0].Succeeded != all[0].Sent || served.Requests != all[0].Sent {
			return nil, fmt.Errorf("results %+v; %d served", all, served.Requests)
		}
		got := all[0]
		cores := used.cpu.Seconds() / length.Seconds()
		return append(used.per(got.Sent, "request"),
			figure{"requests per second", "", got.AchievedRate},
			figure{"unsent", "", float64(got.Unsent)},
			figure{"CPU cores", "", cores},
			figure{"requests per second and core", "", got.AchievedRate / cores},
			figure{"scheduling lag p50", "ms", got.Lag.P50 * 1e3},
			figure{"scheduling lag p99", "ms", got.Lag.P99 * 1e3},
			figure{"latency p99", "ms", got.Latency.P99 * 1e3},
			figure{"stub's CPU per request", "us", float64(served.CPU.Nanoseconds()) / 1e3 / float64(max(served.Requests, 1))},
		), nil
	}
}
