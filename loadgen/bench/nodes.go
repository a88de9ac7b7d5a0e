package main

import (
	"context"
	"fmt"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
)

// nodePackage has the benchmarks of simulated nodes. They are Go's, beside the
// stub that answers all that a kubelet asks; internal/stubapi does not have
// half of it (tokens, CSINodes, selectors on spec.nodeName, client
// certificates).
const nodePackage = "github.com/stormglass/stormglass/loadgen/internal/node"

// nodeCases put the two fidelities side by side.
func nodeCases() []benchmark {
	var all []benchmark
	add := func(name, what, pattern, times string) {
		all = append(all, benchmark{name: name, what: what, ratio: "shared / kubelet", sides: []side{
			{"kubelet", goBenchmark(fmt.Sprintf(pattern, "kubelet"), times)},
			{"shared", goBenchmark(fmt.Sprintf(pattern, "shared"), times)},
		}})
	}
	for _, nodes := range []int{500, 5000} {
		add(fmt.Sprintf("nodes-idle-%d", nodes), fmt.Sprintf("%d nodes that renew a Lease every 10 s, for 20 s", nodes),
			fmt.Sprintf("^BenchmarkIdleNodes$/^%%s-%d$", nodes), "20x")
	}
	add("nodes-pods", "5,000 pods on 500 nodes, from their binding to Ready", "^BenchmarkPodStart$/^%s$", "10x")
	return all
}

// nodeFigures are the benchmarks' units.
var nodeFigures = map[string]figure{
	"%core/1000nodes": {Name: "CPU of 1,000 nodes", Unit: "% of a core"},
	"cpu-us/renewal":  {Name: "CPU per renewal", Unit: "us"},
	"KB/node":         {Name: "heap and stacks per node", Unit: "KB"},
	"cpu-s/1000pods":  {Name: "CPU per 1,000 pods started", Unit: "s"},
}

func goBenchmark(pattern, times string) func(context.Context, job) ([]figure, error) {
	return func(ctx context.Context, _ job) ([]figure, error) {
		out, err := exec.CommandContext(ctx, "go", "test", nodePackage, "-run", "^$", "-bench", pattern, "-benchtime", times).CombinedOutput()
		if err != nil {
			return nil, fmt.Errorf("%w\n%s", err, out)
		}
		figures, err := readBenchmark(string(out))
		if err != nil {
			return nil, fmt.Errorf("%s: %w\n%s", pattern, err, out)
		}
		return figures, nil
	}
}

var benchmarkLine = regexp.MustCompile(`(?m)^Benchmark\S+\s+\d+\s+(.*)$`)

// readBenchmark reads the figures of the one benchmark in what go test printed:
// pairs of a number and a unit. Wall time is not among them.
func readBenchmark(out string) ([]figure, error) {
	lines := benchmarkLine.FindAllStringSubmatch(out, -1)
	if len(lines) != 1 {
		return nil, fmt.Errorf("%d benchmarks ran, not one", len(lines))
	}
	var figures []figure
	words := strings.Fields(lines[0][1])
	for i := 0; i+1 < len(words); i += 2 {
		f, known := nodeFigures[words[i+1]]
		if !known {
			continue
		}
		var err error
		if f.Value, err = strconv.ParseFloat(words[i], 64); err != nil {
			return nil, err
		}
		figures = append(figures, f)
	}
	if len(figures) == 0 {
		return nil, fmt.Errorf("no figures in %q", lines[0][0])
	}
	return figures, nil
}
