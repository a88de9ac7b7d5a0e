package bench

import (
	"slices"
	"testing"
)

const idle = `goos: linux
goarch: amd64
pkg: github.com/stormglass/stormglass/loadgen/internal/node
BenchmarkIdleNodes/shared-500-2         	       2	         3.161 %core/1000nodes	         2.595 KB/node	       326.0 cpu-us/renewal
PASS
`

func TestGoBenchmarkIsRead(t *testing.T) {
	got, err := readBenchmark(idle)
	want := []figure{{"%core/1000nodes", 3.161}, {"KB/node", 2.595}, {"cpu-us/renewal", 326}}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("%v, %v; want %v", got, err, want)
	}
	pods := "BenchmarkPodStart/shared \t 10\t 296793622 ns/op\t 0.1222 cpu-s/1000pods\n"
	if got, err := readBenchmark(pods); err != nil || len(got) != 1 || got[0].Value != 0.1222 {
		t.Errorf("%v, %v; want the CPU alone", got, err)
	}
}

// Output without figures, with several benchmarks or with an invalid figure is an error.
func TestMissingFiguresAreAnError(t *testing.T) {
	for _, out := range []string{"", "PASS\n", idle + idle, "BenchmarkX 1 5 ns/op\n", "BenchmarkX 1 many KB/node\n"} {
		if got, err := readBenchmark(out); err == nil {
			t.Errorf("%q gives %v", out, got)
		}
	}
}
