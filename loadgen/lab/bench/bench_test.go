// Package bench compares the cost of the load engine with the obvious alternative,
// client-go, on the same work in the same minutes:
//
//	go test ./loadgen/lab/bench -run '^$' -bench 'Watch|Requests' -benchtime 1x -count 6 | go tool benchstat -
//
// A third side uses net/http with client-go's transport and our scanner of undecoded responses. The difference between
// ours and net/http is the gain from our HTTP/2 client; the difference between net/http and client-go is the gain from
// not decoding.
//
// Each measurement runs in a separate process, against a stub API server in another process. So it includes only the
// client: CPU time by getrusage, and memory after a garbage collection. An iteration measures the sides in turn, so a
// machine that becomes slower affects all sides. The unit of a result ends with its side (cpu-µs/event:ours), or with
// two sides if the result is their ratio (cpu-µs/event:client-go/ours). The benchmarks measure CPU time, not wall time,
// so other programs on the machine have little effect. Simulated nodes have no counterpart in client-go, so their
// fidelities are compared with each other.
package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"testing"
)

var (
	watches  = flag.Int("watches", 1000, "watches of one process")
	writes   = flag.Int("writes", 50, "writes, each an event of every watch")
	requests = flag.Int("requests", 10000, "requests of one measurement")
	onlySide = flag.String("side", "", "measure this side alone")
)

// runEnv is the environment variable that holds, as JSON, the measurement that a process makes.
const runEnv = "STORMGLASS_BENCH_RUN"

func TestMain(m *testing.M) {
	ChildMain()
	if text := os.Getenv(runEnv); text != "" {
		if err := measure(context.Background(), text); err != nil {
			fmt.Fprintln(os.Stderr, "bench:", err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

type job struct {
	Benchmark, Side           string
	Watches, Writes, Requests int
}

// figure is one number that a measurement returns.
type figure struct {
	Unit  string
	Value float64
}

// comparison is a piece of work that all sides do. Ratios are relative to the first side.
type comparison struct {
	name  string
	sides []side
}

type side struct {
	name string
	run  func(ctx context.Context, j job) ([]figure, error)
}

// comparisons returns the comparisons of each benchmark.
func comparisons() map[string][]comparison {
	return map[string][]comparison{
		"BenchmarkWatch": watchComparisons(), "BenchmarkRequests": requestComparisons(),
		"BenchmarkRate": rateComparisons(), "BenchmarkNodes": nodeComparisons(),
	}
}

// measure runs the measurement that text describes as JSON, and writes its figures to the standard output. It runs in a
// separate process.
func measure(ctx context.Context, text string) error {
	var j job
	if err := json.Unmarshal([]byte(text), &j); err != nil {
		return err
	}
	for benchmark, all := range comparisons() {
		for _, c := range all {
			for _, s := range c.sides {
				if benchmark+"/"+c.name != j.Benchmark || s.name != j.Side {
					continue
				}
				figures, err := s.run(ctx, j)
				if err != nil {
					return err
				}
				return json.NewEncoder(os.Stdout).Encode(figures)
			}
		}
	}
	return fmt.Errorf("there is no %s of %s", j.Side, j.Benchmark)
}

// apart runs a measurement in a separate process.
func apart(ctx context.Context, j job) ([]figure, error) {
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
	cmd.Stderr = os.Stderr
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

// compareAll runs a sub-benchmark for each of a benchmark's comparisons.
func compareAll(b *testing.B) {
	for _, c := range comparisons()[b.Name()] {
		b.Run(c.name, func(b *testing.B) { compare(b, c.sides) })
	}
}

// compare measures the sides in turn, once in each iteration, and reports the
// means of their figures and of the ratios.
func compare(b *testing.B, sides []side) {
	sums := map[string]float64{}
	for b.Loop() {
		base := map[string]float64{}
		for i, s := range sides {
			if *onlySide != "" && s.name != *onlySide {
				continue
			}
			figures, err := apart(b.Context(), job{b.Name(), s.name, *watches, *writes, *requests})
			if err != nil {
				b.Fatal(err)
			}
			for _, f := range figures {
				sums[f.Unit+":"+s.name] += f.Value
				if i == 0 {
					base[f.Unit] = f.Value
				} else if base[f.Unit] > 0 {
					sums[f.Unit+":"+s.name+"/"+sides[0].name] += f.Value / base[f.Unit]
				}
			}
		}
	}
	for unit, sum := range sums {
		b.ReportMetric(sum/float64(b.N), unit)
	}
	b.ReportMetric(0, "ns/op") // mostly the time that the stub takes
}

func startStub(fill ChildFill) (*Child, error) {
	stub, err := StartChild()
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
