package runmetrics_test

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/promql"

	"github.com/stormglass/stormglass/deploy/deploytest"
	"github.com/stormglass/stormglass/internal/exitcode"
	"github.com/stormglass/stormglass/loadgen/internal/archive"
	"github.com/stormglass/stormglass/loadgen/internal/archivetest"
	"github.com/stormglass/stormglass/loadgen/internal/runmetrics"
	"github.com/stormglass/stormglass/loadgen/internal/scrape"
	"github.com/stormglass/stormglass/loadgen/result"
)

// day records a run of five hours with a scrape each hour, at odd milliseconds, and labels
// that need quoting.
func day(t *testing.T) string {
	t.Helper()
	l := archivetest.New(t, scrape.Options{Extra: []string{"odd_total"}}, "etcd-0", "kube-apiserver-0")
	p := result.Phase{Name: "calm", Start: l.Boundary(1237 * time.Millisecond)}
	for i := range 5 {
		l.Parts["etcd-0"].Add(`odd_total{text="a \"b\" \\ c\nd",To="x"}`, 1.5)
		l.Parts["kube-apiserver-0"].SetDown(i == 2)
		p.End = l.Boundary(time.Hour + 111*time.Millisecond)
	}
	text := "apiVersion: stormglass/v1alpha1\nkind: Scenario\nname: day\nphases: [{name: calm, for: 5h}]\n"
	run := result.Run{ID: "ab12", Scenario: "day", Started: p.Start.Add(-time.Minute), Ended: p.End.Add(time.Minute), Cluster: result.Cluster{Bundled: true}}
	return l.RunDir(text, run, result.Measurements{Phases: []result.Phase{p}})
}

// dump returns the samples that promtool finds in a TSDB, one per line, sorted.
func dump(t *testing.T, dir string) []string {
	t.Helper()
	if err := os.Mkdir(filepath.Join(dir, archive.WalDir), 0o700); err != nil { // promtool requires one
		t.Fatal(err)
	}
	out, err := deploytest.Run(t, ".", deploytest.Tool(t, deploytest.Promtool), "tsdb", "dump", dir)
	if err != nil {
		t.Fatalf("promtool tsdb dump: %v\n%s", err, out)
	}
	return sortedLines(out)
}

// recorded returns the samples of a run in promtool's format, with additional labels.
func recorded(t *testing.T, r *runmetrics.Run, more map[string]string, stale bool) []string {
	t.Helper()
	var b strings.Builder
	err := archive.Stream(t.Context(), archive.WithLabels(r.Raw(), more), 0, math.MaxInt64/2, func(l labels.Labels, points []promql.FPoint) error {
		for _, p := range points {
			if stale || !value.IsStaleNaN(p.F) {
				fmt.Fprintf(&b, "%s %g %d\n", l, p.F, p.T)
			}
		}
		return nil
	}, archive.Named())
	if err != nil {
		t.Fatal(err)
	}
	return sortedLines(b.String())
}

// promtool converts the text to blocks that hold each sample at its millisecond.
func TestPromtoolReadsOpenMetrics(t *testing.T) {
	dir := day(t)
	unchanged(t, dir)
	r := open(t, dir)
	more := map[string]string{"run": "day"}
	var text bytes.Buffer
	done, err := r.WriteOpenMetrics(t.Context(), &text, runmetrics.Export{Labels: more})
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(text.String(), "\n") - 1; n != done.Samples || !strings.HasSuffix(text.String(), "\n# EOF\n") {
		t.Errorf("%d samples in %d lines, which end with %q", done.Samples, n, text.String()[text.Len()-20:])
	}
	file, data := filepath.Join(t.TempDir(), "run.txt"), t.TempDir()
	if err := os.WriteFile(file, text.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := deploytest.Run(t, ".", deploytest.Tool(t, deploytest.Promtool), "tsdb", "create-blocks-from", "openmetrics", file, data)
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if got, want := dump(t, data), recorded(t, r, more, false); !slices.Equal(got, want) {
		t.Errorf("promtool has %d samples, the run %d:\n%s", len(got), len(want), difference(got, want))
	}
}

// promtool opens the blocks. Each block is within two hours, and together they hold each
// sample and the ends of series.
func TestPromtoolOpensBlocks(t *testing.T) {
	dir := day(t)
	unchanged(t, dir)
	r := open(t, dir)
	more := map[string]string{"run": "day", "cluster": "lab"}
	data := filepath.Join(t.TempDir(), "new", "data")
	done, err := r.WriteBlocks(t.Context(), data, runmetrics.Export{Labels: more})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := dump(t, data), recorded(t, r, more, true); !slices.Equal(got, want) || done.Samples != len(want) {
		t.Errorf("promtool has %d samples, the run %d, and %d were counted:\n%s", len(got), len(want), done.Samples, difference(got, want))
	}
	out, err := deploytest.Run(t, ".", deploytest.Tool(t, deploytest.Promtool), "tsdb", "list", data)
	if lines := strings.Split(strings.TrimSpace(out), "\n"); err != nil || len(lines)-1 != done.Blocks || done.Blocks < 3 {
		t.Errorf("%d blocks, %v\n%s", done.Blocks, err, out)
	}
	for _, line := range strings.Split(strings.TrimSpace(out), "\n")[1:] {
		fields := strings.Fields(line)
		from, err1 := strconv.ParseInt(fields[1], 10, 64)
		to, err2 := strconv.ParseInt(fields[2], 10, 64)
		if two := (2 * time.Hour).Milliseconds(); err1 != nil || err2 != nil || from/two != (to-1)/two {
			t.Errorf("a block is not within two hours of Prometheus' own: %s", line)
		}
	}
}

// Blocks cannot be written into the directory of a run.
func TestBlocksStayOutOfRuns(t *testing.T) {
	dir := day(t)
	unchanged(t, dir)
	r := open(t, dir)
	for _, out := range []string{dir, filepath.Join(dir, result.TSDBDir), filepath.Join(dir, "a", "b")} {
		if _, err := r.WriteBlocks(t.Context(), out, runmetrics.Export{}); exitcode.Of(err) != exitcode.Usage {
			t.Errorf("%s: %v", out, err)
		}
	}
}

// Blocks are added to a directory, which keeps everything in it. An existing file is no place for blocks.
func TestBlocksReplaceNothing(t *testing.T) {
	r, data := open(t, day(t)), t.TempDir()
	notes := filepath.Join(data, "notes")
	if err := os.WriteFile(notes, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := r.WriteBlocks(t.Context(), data, runmetrics.Export{}); err != nil {
		t.Fatal(err)
	}
	before := contents(t, data)
	if _, err := r.WriteBlocks(t.Context(), data, runmetrics.Export{}); err != nil {
		t.Fatal(err)
	}
	if _, err := r.WriteBlocks(t.Context(), notes, runmetrics.Export{}); exitcode.Of(err) != exitcode.Usage {
		t.Errorf("blocks in a file: %v", err)
	}
	after := contents(t, data)
	for name, text := range before {
		if now, there := after[name]; !there || now != text {
			t.Errorf("%s has changed", name)
		}
	}
	if len(after) <= len(before) {
		t.Errorf("%d files, %d before the second export", len(after), len(before))
	}
}

// A partial export holds the samples from its start to its end.
func TestExportOfAPart(t *testing.T) {
	r := open(t, day(t))
	var text bytes.Buffer
	from, to := r.Start.Add(time.Hour), r.End.Add(-time.Hour)
	if _, err := r.WriteOpenMetrics(t.Context(), &text, runmetrics.Export{From: from, To: to}); err != nil {
		t.Fatal(err)
	}
	n := 0
	for line := range strings.Lines(text.String()) {
		if !strings.HasPrefix(line, `up{instance="etcd-0"`) {
			continue
		}
		n++
		fields := strings.Fields(line)
		at, err := strconv.ParseFloat(fields[len(fields)-1], 64)
		if err != nil || at < float64(from.UnixMilli())/1000 || at > float64(to.UnixMilli()+1)/1000 {
			t.Errorf("%s is not from %v to %v", line, from, to)
		}
	}
	if n != 4 {
		t.Errorf("%d samples of up, want 4", n)
	}
}

// Prometheus' parser reads every millisecond back from the text.
func TestMillisecondsSurvive(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	for range 100_000 {
		ms := 1_500_000_000_000 + random.Int64N(1_000_000_000_000)
		text := strconv.FormatFloat(runmetrics.Seconds(ms), 'f', -1, 64)
		back, err := strconv.ParseFloat(text, 64)
		if err != nil || int64(back*1000) != ms {
			t.Fatalf("%d ms is written as %s and read as %d", ms, text, int64(back*1000))
		}
	}
}

// difference returns the first lines in which got and want differ.
func difference(got, want []string) string {
	for i := range want {
		if i >= len(got) || got[i] != want[i] {
			return fmt.Sprintf("line %d\n got %q\nwant %q", i, strings.Join(got[min(i, len(got)):min(i+1, len(got))], ""), want[i])
		}
	}
	return "there is more than that"
}
