package bench

import (
	"context"
	"fmt"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// nodePackage has the benchmarks of simulated nodes and a stub that responds to every request of a kubelet.
// internal/stubapi does not support many of them (tokens, CSINodes, selectors on spec.nodeName, client certificates).
const nodePackage = "github.com/stormglass/stormglass/loadgen/internal/node"

// BenchmarkNodes compares the fidelities: nodes that renew a Lease every 10 s, for 20 s (docs/sizing.md has results for
// more nodes), and 5,000 pods on 500 nodes, from their binding until they are Ready.
func BenchmarkNodes(b *testing.B) { compareAll(b) }

func nodeComparisons() []comparison {
	var all []comparison
	add := func(name, pattern, times string) {
		all = append(all, comparison{name, []side{
			{"kubelet", goBenchmark(fmt.Sprintf(pattern, "kubelet"), times)},
			{"lean", goBenchmark(fmt.Sprintf(pattern, "lean"), times)},
			{"shared", goBenchmark(fmt.Sprintf(pattern, "shared"), times)},
		}})
	}
	for _, nodes := range []int{500, 5000} {
		add(fmt.Sprintf("idle=%d", nodes), fmt.Sprintf("^BenchmarkIdleNodes$/^%%s-%d$", nodes), "20x")
	}
	add("pods", "^BenchmarkPodStart$/^%s$", "10x")
	return all
}

// nodeFigures are the units that readBenchmark reads. It ignores others, such as wall time.
var nodeFigures = []string{"%core/1000nodes", "cpu-us/renewal", "KB/node", "B/node/s", "rss-MB", "descriptors", "cpu-s/1000pods"}

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

// readBenchmark reads the figures from the output of go test, which must contain exactly one benchmark. A figure is a
// number followed by its unit.
func readBenchmark(out string) ([]figure, error) {
	lines := benchmarkLine.FindAllStringSubmatch(out, -1)
	if len(lines) != 1 {
		return nil, fmt.Errorf("%d benchmarks ran, not one", len(lines))
	}
	var figures []figure
	words := strings.Fields(lines[0][1])
	for i := 0; i+1 < len(words); i += 2 {
		unit := words[i+1]
		if !slices.Contains(nodeFigures, unit) {
			continue
		}
		value, err := strconv.ParseFloat(words[i], 64)
		if err != nil {
			return nil, err
		}
		figures = append(figures, figure{unit, value})
	}
	if len(figures) == 0 {
		return nil, fmt.Errorf("no figures in %q", lines[0][0])
	}
	return figures, nil
}
