package report

import (
	"strings"
	"testing"

	"github.com/stormglass/stormglass/internal/markdown"
	"github.com/stormglass/stormglass/loadgen/result"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

func TestSummary(t *testing.T) {
	silent, fired := 0.0, 1.0
	r := result.Result{
		Verdict: result.Fail, ExitCode: 1,
		Run: result.Run{
			ID: "ab12", Scenario: "rollout", Variant: "qps-20", Seed: 7, Overrides: []string{"nodes.count=5"},
			Versions: result.Versions{Stormglass: "v1", Kubernetes: "v1.37.1"}, Host: result.Host{CPUs: 2},
		},
		Reasons: []string{"slow: 2 s is over 1 s", "1 of 99 scrapes were lost: etcd-0"},
		Gates: []result.Gate{
			gate("quiet", "alert", result.Pass, &silent, "<=", 0, scenario.Count, "steady"),
			gate("pages", "alert", result.Pass, &fired, ">=", 1, scenario.Count, "storm"),
			gate("slow", "mutating-latency", result.Fail, ptr(2), "<=", 1, scenario.Seconds, "storm"),
			gate("blind", "expr", result.NoData, nil, "<=", 1, scenario.Number, "storm"),
		},
	}
	r.Gates[2].Detail = `POST pods | 99 <observations>, le=~"1\|2"`
	var b strings.Builder
	if err := Summary(&b, r); err != nil {
		t.Fatal(err)
	}
	want := `### FAIL: rollout, variant qps-20

1 of 4 gates failed, 1 without data.

- 1 of 99 scrapes were lost: etcd-0

| verdict | gate | value | bound | detail |
|---|---|---|---|---|
| **fail** | slow | 2 s | ≤ 1 s | POST pods \| 99 &lt;observations&gt;, le=~"1\\\|2" |
| **no data** | blind | – | ≤ 1 |  |
| pass | quiet | did not fire | must not fire |  |
| pass | pages | fired | must fire |  |

run ab12, seed 7, Stormglass v1, Kubernetes v1.37.1, 2 CPUs, set nodes.count=5

`
	if b.String() != want {
		t.Errorf("got\n%s\nwant\n%s", b.String(), want)
	}
}

func TestComparisonSummary(t *testing.T) {
	ratio := 0.25
	c := result.Comparison{
		Scenario: "slow-fsync",
		Variants: []result.Variant{{Name: "none", Verdict: result.Pass}, {Name: "25ms", Verdict: result.NoData, Reasons: []string{"a_b: no data"}}},
		Rows:     []result.Row{{Name: "patch-p99", Unit: "seconds", Values: []result.Value{{Value: ptr(0.2)}, {Value: ptr(0.05), Ratio: &ratio}}}},
	}
	var b strings.Builder
	if err := ComparisonSummary(&b, c); err != nil {
		t.Fatal(err)
	}
	want := `### NO DATA: slow-fsync

2 of 2 variants ran, 1 passed.

| verdict | variant | why |
|---|---|---|
| pass | none |  |
| **no data** | 25ms | a\_b: no data |

| metric | none | 25ms |
|---|---:|---:|
| patch-p99 | 200 ms | 50 ms 0.25× |
`
	if got, note, _ := strings.Cut(b.String(), "\n"+markdown.Cell(ratioNote(c))+"\n"); got != want || note != "\n" {
		t.Errorf("got\n%s%s\nwant\n%s", got, note, want)
	}
}
