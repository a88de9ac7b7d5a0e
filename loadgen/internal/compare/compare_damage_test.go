package compare

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stormglass/stormglass/internal/exitcode"
	"github.com/stormglass/stormglass/loadgen/internal/archivetest"
	"github.com/stormglass/stormglass/loadgen/internal/rundir"
	"github.com/stormglass/stormglass/loadgen/result"
)

// A comparison does not keep the verdicts of variants that cannot be judged any more.
func TestDamagedComparisonDoesNotPass(t *testing.T) {
	t.Parallel()
	whole := t.TempDir()
	c := result.Comparison{Schema: result.ComparisonSchema, Scenario: "sound", Rows: []result.Row{}}
	for _, name := range []string{"a", "b"} {
		if err := os.CopyFS(filepath.Join(whole, name), os.DirFS(archivetest.SoundVariant(t, name))); err != nil {
			t.Fatal(err)
		}
		c.Variants = append(c.Variants, result.Variant{Name: name})
	}
	if err := writeComparison(whole, c); err != nil {
		t.Fatal(err)
	}
	compare := func(dir string) (int, string) {
		c, err := Compare(t.Context(), dir)
		if err != nil {
			return exitcode.Of(err), err.Error()
		}
		text, err := json.Marshal(c)
		if err != nil {
			t.Fatal(err)
		}
		return c.ExitCode, string(text)
	}
	if code, said := compare(whole); code != exitcode.Pass {
		t.Fatalf("undamaged comparison: exit code %d, %s", code, said)
	}
	listed := func(dir string, do func(map[string]any)) {
		archivetest.Change(t, filepath.Join(dir, result.ComparisonFile), do)
	}
	for what, c := range map[string]struct {
		do   func(dir string)
		says string
	}{
		"a variant's directory gone": {func(dir string) { archivetest.Must(t, os.RemoveAll(filepath.Join(dir, "b"))) }, "b no longer contains a run"},
		"a variant's run damaged":    {func(dir string) { archivetest.Must(t, os.Remove(filepath.Join(dir, "b", result.RunFile))) }, "run.json is missing"},
		"a variant not listed":       {func(dir string) { listed(dir, func(m map[string]any) { m["variants"] = m["variants"].([]any)[:1] }) }, "it does not list variant b, although this variant ran"},
		"none listed":                {func(dir string) { listed(dir, func(m map[string]any) { m["variants"] = nil }) }, "it has no variants"},
		"one that did not run passed": {func(dir string) {
			archivetest.Must(t, os.RemoveAll(filepath.Join(dir, "b")))
			listed(dir, func(m map[string]any) {
				archivetest.At(m, "variants", 1).(map[string]any)["notRun"] = "the plane did not start"
				archivetest.At(m, "variants", 1).(map[string]any)["exitCode"] = 77
			})
		}, "the plane did not start"},
		"another variant's run in its place": {func(dir string) {
			archivetest.Must(t, os.RemoveAll(filepath.Join(dir, "b")))
			archivetest.Must(t, os.CopyFS(filepath.Join(dir, "b"), os.DirFS(filepath.Join(dir, "a"))))
		}, "the directory b contains a run of sound a instead of variant b"},
		"another scenario's": {func(dir string) { listed(dir, func(m map[string]any) { m["scenario"] = "storm" }) }, "the directory a contains a run of sound a instead of variant a"},
		"not there":          {func(dir string) { archivetest.Must(t, os.Remove(filepath.Join(dir, result.ComparisonFile))) }, "comparison.json is missing"},
		"a link to itself": {func(dir string) {
			archivetest.Must(t, os.Remove(filepath.Join(dir, result.ComparisonFile)))
			archivetest.Must(t, os.Symlink(result.ComparisonFile, filepath.Join(dir, result.ComparisonFile)))
		}, "comparison.json is damaged: too many levels"},
		"a name that leads out": {func(dir string) {
			listed(dir, func(m map[string]any) { archivetest.At(m, "variants", 1).(map[string]any)["name"] = "../b" })
		}, "is not a valid name"},
		"cut": {func(dir string) { archivetest.Must(t, os.Truncate(filepath.Join(dir, result.ComparisonFile), 40)) }, "comparison.json is damaged: line "},
		"a list": {func(dir string) {
			archivetest.Must(t, os.WriteFile(filepath.Join(dir, result.ComparisonFile), []byte("[]"), 0o600))
		}, "comparison.json is damaged: "},
	} {
		dir := archivetest.CopyDir(t, whole)
		c.do(dir)
		if !rundir.IsComparison(dir) {
			t.Errorf("%s: IsComparison = false, want true", what)
		}
		code, said := compare(dir)
		if code != exitcode.NoData || !strings.Contains(said, c.says) {
			t.Errorf("%s: exit code %d, %s", what, code, said)
		}
		if page, err := os.ReadFile(filepath.Join(dir, result.ComparisonHTMLFile)); err == nil && !bytes.Contains(page, []byte("no data")) {
			t.Errorf("%s: comparison.html still shows a pass", what)
		}
	}
}
