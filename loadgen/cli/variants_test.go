package cli

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/stormglass/stormglass/internal/planetest"
	"github.com/stormglass/stormglass/loadgen/result"
)

// TestVariantsWithAFaultAndAnInterrupt runs variants on their own planes. In the first variant a component is killed: the
// timeline shows this, and the result counts. A gate has no data, because the API server does not export its metric. The second
// variant is interrupted and still judged, and the third does not run. The run and `loadgen report` report all of this.
func TestVariantsWithAFaultAndAnInterrupt(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(planetest.Dir(t), "run")
	p := startRun(t, "testdata/killed.yaml", "--variant", "all", "--out", dir)
	p.awaitLine("variant long, 2 of 3")
	p.awaitLine("fault: kill on kube-scheduler-0")
	if err := p.cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	p.wantExit(3)
	awaitNoProcess(t, dir)
	wantFiles(t, filepath.Join(dir, "long"))

	short := readResult(t, filepath.Join(dir, "short"))
	for _, g := range short.Gates {
		switch {
		case g.Name == "disabled":
			if g.Verdict != result.NoData || g.Withheld != nil {
				t.Errorf("gate %s, on a metric that is not exported: %s (%s)", g.Name, g.Verdict, g.Detail)
			}
		case g.Verdict != result.Pass && !planetest.Unjudged(short, g):
			t.Errorf("gate %s: %s (%s)", g.Name, g.Verdict, g.Detail)
		}
	}
	for _, why := range short.Reasons {
		if strings.Contains(why, "scrapes were lost") || strings.Contains(why, "exit") || strings.Contains(why, "restarted") {
			t.Errorf("the kill is held against the run: %s", why)
		}
	}
	text, err := os.ReadFile(filepath.Join(dir, "short", result.TimelineFile))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"kind":"fault-begin","name":"kill"`, `"kind":"fault-end","name":"kill"`, `"kind":"exit","name":"kube-scheduler-0"`, `"kind":"ready","name":"kube-scheduler-0"`} {
		if strings.Count(string(text), want) != 1 {
			t.Errorf("%d times %s in the timeline:\n%s", strings.Count(string(text), want), want, text)
		}
	}
	if long := readResult(t, filepath.Join(dir, "long")); !long.Run.Interrupted || long.Verdict == result.Pass || long.Run.Variant != "long" {
		t.Errorf("run of long: %+v", long.Run)
	}

	wantCompared(t, dir)
	startLoadgen(t, "report", dir).wantExit(3)
	wantCompared(t, dir)
}

// wantCompared checks the outcome of each variant.
func wantCompared(t *testing.T, dir string) {
	t.Helper()
	c := readJSON[result.Comparison](t, filepath.Join(dir, result.ComparisonFile))
	var ran []bool
	for _, v := range c.Variants {
		ran = append(ran, v.NotRun == "")
	}
	if !slices.Equal(ran, []bool{true, true, false}) || c.Variants[1].Verdict != result.NoData || len(c.Rows) != 2 {
		t.Fatalf("compared: %+v", c)
	}
	// If the machine was too busy for the generator, the reason replaces the value.
	if v := c.Rows[0].Values[0]; v.Value == nil && !strings.Contains(v.Detail, "the generator was saturated") {
		t.Errorf("compared: %+v", c)
	}
	if _, err := os.Stat(filepath.Join(dir, result.ComparisonHTMLFile)); err != nil {
		t.Error(err)
	}
}
