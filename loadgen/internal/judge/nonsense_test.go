package judge

import (
	"bytes"
	"errors"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stormglass/stormglass/internal/exitcode"
	"github.com/stormglass/stormglass/loadgen/internal/archivetest"
	"github.com/stormglass/stormglass/loadgen/internal/scrape"
	"github.com/stormglass/stormglass/loadgen/result"
)

// reads returns the first requests of a phase in measurements.
func reads(m map[string]any, phase int) map[string]any {
	return archivetest.At(m, "phases", phase, "requests", 0).(map[string]any)
}

// Well-formed JSON that no generator can have written counts as damage, with or without
// digests.
func TestImpossibleMeasurementsDoNotPass(t *testing.T) {
	t.Parallel()
	whole := archivetest.SoundRun(t)
	forget(t, whole)
	for what, c := range map[string]struct {
		do  func(map[string]any)
		why string
	}{
		"a negative count":          {func(m map[string]any) { reads(m, 0)["sent"] = -300 }, "phases[0].requests[0].sent is -300"},
		"a negative latency":        {func(m map[string]any) { archivetest.At(reads(m, 1), "latency").(map[string]any)["meanSeconds"] = -1 }, "phases[1].requests[0].latency.meanSeconds is -1"},
		"a count past all counting": {func(m map[string]any) { reads(m, 0)["offered"] = int64(math.MaxInt64) }, "which is impossible"},
		"a length past all lengths": {func(m map[string]any) { archivetest.At(m, "generator").(map[string]any)["cpuSeconds"] = 1e300 }, "generator.cpuSeconds is 1e+300"},
		"text for a number":         {func(m map[string]any) { reads(m, 0)["sent"] = "NaN" }, "sent"},
		"quantiles upside down":     {func(m map[string]any) { archivetest.At(reads(m, 0), "latency").(map[string]any)["p50Seconds"] = 5 }, "quantiles are not in ascending order"},
		"a phase missing":           {func(m map[string]any) { m["phases"] = m["phases"].([]any)[:1] }, "phase storm is missing"},
		"no phases":                 {func(m map[string]any) { delete(m, "phases") }, "phase calm is missing"},
		"a phase twice":             {func(m map[string]any) { m["phases"] = append(m["phases"].([]any), archivetest.At(m, "phases", 1)) }, "phase storm appears twice"},
		"a phase too many": {func(m map[string]any) {
			last := map[string]any{"name": "more", "start": archivetest.At(m, "phases", 1, "end"), "end": archivetest.At(m, "phases", 1, "end")}
			m["phases"] = append(m["phases"].([]any), last)
		}, "it has phase more"},
		"phases in another order": {func(m map[string]any) { all := m["phases"].([]any); all[0], all[1] = all[1], all[0] }, "ends 1s before it starts"},
		"times reversed": {func(m map[string]any) {
			p := archivetest.At(m, "phases", 1).(map[string]any)
			p["start"], p["end"] = p["end"], p["start"]
		}, "ends"},
		"a phase of 300 years": {func(m map[string]any) {
			archivetest.At(m, "phases", 1).(map[string]any)["end"] = "2327-01-01T00:00:00Z"
		}, "which exceeds the maximum length of a run"},
		"a phase without a time": {func(m map[string]any) { delete(archivetest.At(m, "phases", 0).(map[string]any), "start") }, "has no start or no end"},
		"a load twice": {func(m map[string]any) {
			archivetest.At(m, "phases", 0).(map[string]any)["requests"] = []any{reads(m, 0), reads(m, 0)}
		}, "load reads get configmaps appears twice"},
		"sums that do not add up":    {func(m map[string]any) { reads(m, 0)["unsent"] = 7 }, "300 sent and 7 unsent requests do not add up to 300 offered"},
		"more answers than requests": {func(m map[string]any) { reads(m, 0)["succeeded"] = 301 }, "more responses than the 300 requests"},
		"an interrupted phase":       {func(m map[string]any) { archivetest.At(m, "phases", 1).(map[string]any)["interrupted"] = true }, "storm is interrupted or does not match the scenario"},
		"an undeclared condition":    {func(m map[string]any) { archivetest.At(m, "phases", 1).(map[string]any)["until"] = "podsReady" }, "storm is interrupted or does not match the scenario"},
	} {
		dir := archivetest.CopyDir(t, whole)
		archivetest.Change(t, filepath.Join(dir, result.MeasurementsFile), c.do)
		if o := weighed(t, dir); o.code != exitcode.NoData || !strings.HasPrefix(o.said[0], "measurements.json is damaged: ") || !strings.Contains(o.said[0], c.why) {
			t.Errorf("%s: exit code %d, %q", what, o.code, o.said)
		}
	}
}

// The error names a damaged file, and the line and byte if they are known.
func TestDamageNamesLineAndByte(t *testing.T) {
	t.Parallel()
	whole := archivetest.SoundRun(t)
	for file, c := range map[string]struct {
		do   func(text []byte) []byte
		want string
	}{
		result.TimelineFile: {func(text []byte) []byte { return bytes.Replace(text, []byte(`"fault-end"`), []byte(`"fault-end`), 1) }, "timeline.jsonl is damaged: line 5: byte "},
		result.PulseFile:    {func(text []byte) []byte { return bytes.Replace(text, []byte(`"ok":5`), []byte(`"ok":-5`), 1) }, "pulse.jsonl is damaged: line 1: requests of reads: "},
		result.RunFile:      {func(text []byte) []byte { return text[:len(text)/2] }, "run.json is damaged: line "},
		result.ScenarioFile: {func(text []byte) []byte { return bytes.Replace(text, []byte("phases:"), []byte("fazes:"), 1) }, "scenario.yaml is damaged: line 8: "},
		result.AuditFile:    {func([]byte) []byte { return []byte("{\n\n]") }, "audit.json is damaged: line 3, byte 4: "},
	} {
		dir := archivetest.CopyDir(t, whole)
		text, err := os.ReadFile(filepath.Join(dir, file))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, file), c.do(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if o := weighed(t, dir); !strings.HasPrefix(o.said[0], c.want) {
			t.Errorf("%s: %q, want %q...", file, o.said, c.want)
		}
	}
	dir := archivetest.CopyDir(t, whole) // only its gates show the error
	gone := regexp.MustCompile(`\n *faults:.*`).ReplaceAllString(archivetest.SoundScenario, "")
	if err := os.WriteFile(filepath.Join(dir, result.ScenarioFile), []byte(gone), 0o600); err != nil {
		t.Fatal(err)
	}
	if o := judged(t, dir); o.code != exitcode.NoData || !o.names("scenario.yaml is damaged: line 1") || o.names(dir) {
		t.Errorf("a scenario without the fault that its gate needs: exit code %d, %q", o.code, o.said)
	}
}

// An empty object has few bytes in a file and takes a kilobyte in memory.
func TestTooManyObjectsAreRefused(t *testing.T) {
	t.Parallel()
	dir := archivetest.SoundRun(t)
	for _, empty := range []string{"{}", "[]"} {
		text := `{"phases":[` + strings.Repeat(empty+",", 1_000_000) + empty + `]}`
		archivetest.Must(t, os.WriteFile(filepath.Join(dir, result.MeasurementsFile), []byte(text), 0o600))
		if o := weighed(t, dir); o.code != exitcode.NoData || !strings.HasPrefix(o.said[0], "measurements.json is damaged: it has more objects and lists than the maximum of 1000000") {
			t.Errorf("%s: exit code %d, %q", empty, o.code, o.said)
		}
	}
}

// A run.json with the digests of its files also has its own digest.
func TestRunWithoutOwnDigestIsDamaged(t *testing.T) {
	t.Parallel()
	dir := archivetest.SoundRun(t)
	archivetest.Change(t, filepath.Join(dir, result.RunFile), func(run map[string]any) { delete(run, "digest") })
	if o := weighed(t, dir); o.code != exitcode.NoData || !strings.HasPrefix(o.said[0], "run.json is damaged: it was changed after the run: its field `digest`, the SHA-256 of the file, is missing") {
		t.Errorf("exit code %d, %q", o.code, o.said)
	}
}

// No gate uses the times of a replay: a change is noted, and the run still passes.
func TestChangedReplayIsNoted(t *testing.T) {
	t.Parallel()
	dir := archivetest.SoundRun(t)
	archivetest.Must(t, os.WriteFile(filepath.Join(dir, "replay-reads.txt"), []byte("0\n"), 0o600))
	const want = "replay-reads.txt is damaged: the run did not write it"
	if o := weighed(t, dir); o.code != exitcode.Pass || len(o.result.Notes) != 1 || o.result.Notes[0] != want {
		t.Errorf("exit code %d, %q, notes %q", o.code, o.said, o.result.Notes)
	}
}

// A timeline must agree with the measurements, with or without digests.
func TestTimelineWithOtherTimesDoesNotPass(t *testing.T) {
	t.Parallel()
	whole := archivetest.SoundRun(t)
	forget(t, whole)
	for what, c := range map[string]struct {
		do  func(lines []string) []string
		why string
	}{
		"a start lost":     {func(l []string) []string { return l[1:] }, "the start of phase calm is missing"},
		"an end twice":     {func(l []string) []string { return append(l, l[1]) }, "the end of phase calm appears 2 times"},
		"a clock set back": {func(l []string) []string { l[5] = strings.Replace(l[5], `T08:`, `T07:`, 1); return l }, "the end of phase storm is at 2027-01-15T07:"},
		"all of another day": {func(l []string) []string {
			return strings.Split(strings.ReplaceAll(strings.Join(l, "\n"), "-15T", "-16T"), "\n")
		}, "the start of phase calm is at 2027-01-16T"},
	} {
		dir := archivetest.CopyDir(t, whole)
		file := filepath.Join(dir, result.TimelineFile)
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		lines := c.do(strings.Split(strings.TrimSpace(string(text)), "\n"))
		if err := os.WriteFile(file, []byte(strings.Join(lines, "\n")+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if o := weighed(t, dir); o.code != exitcode.NoData || !strings.HasPrefix(o.said[0], "timeline.jsonl is damaged: "+c.why) {
			t.Errorf("%s: exit code %d, %q", what, o.code, o.said)
		}
	}
}

// A run judged by another scenario than its own neither passes nor fails, and each place
// that shows its verdict says so.
func TestForeignScenarioDoesNotPass(t *testing.T) {
	t.Parallel()
	whole := archivetest.SoundRun(t)
	for what, edit := range map[string]func(string) string{
		"its last gates lost":     func(s string) string { return s[:strings.Index(s, "  - {name: felt")] },
		"a bound raised":          func(s string) string { return strings.Replace(s, "max: 1s", "max: 9s", 1) },
		"a bound that fails":      func(s string) string { return strings.Replace(s, "max: 1s", "max: 1ms", 1) },
		"a comment":               func(s string) string { return s + "# looked at\n" },
		"another scenario's name": func(s string) string { return strings.Replace(s, "name: sound", "name: other", 1) },
	} {
		dir := archivetest.CopyDir(t, whole)
		file := filepath.Join(dir, result.ScenarioFile)
		if err := os.WriteFile(file, []byte(edit(archivetest.SoundScenario)), 0o600); err != nil {
			t.Fatal(err)
		}
		const says = "scenario.yaml is not the scenario that ran"
		if o := judged(t, dir); o.code != exitcode.NoData || o.result.Verdict != result.NoData || !strings.HasPrefix(o.said[0], says) {
			t.Errorf("%s: exit code %d, %q", what, o.code, o.said)
		}
		noStalePass(t, what, dir)
		const fits = "gates: [{name: g, objective: generator-memory, max: 1GB}]\n"
		for gates, says := range map[string]string{fits: says, strings.Replace(fits, "generator-memory", "watch-lost", 1): "scenario.yaml is damaged: it is not the scenario that ran"} {
			if o := outcomeOf(By(t.Context(), dir, []string{written(t, "gates.yaml", gates)})); o.code != exitcode.NoData || !o.names(says) {
				t.Errorf("%s, by other gates: exit code %d, %q", what, o.code, o.said)
			}
		}
		for _, told := range []string{result.ResultFile, result.JUnitFile, result.HTMLFile} {
			if text, err := os.ReadFile(filepath.Join(dir, told)); err != nil || !bytes.Contains(text, []byte(says)) {
				t.Errorf("%s: %s does not say so (%v)", what, told, err)
			}
		}
	}
}

// Data that the generator only knows at a run's end is missing from a killed run, and
// must not count as zero. A run that was killed while it came up has no run.json.
func TestKilledRunNamesMissingRecords(t *testing.T) {
	t.Parallel()
	l := archivetest.New(t, scrape.Options{}, "etcd-0")
	l.Boundary(time.Second)
	l.Boundary(time.Second)
	young := archivetest.CopyDir(t, l.Dir()) // with a write-ahead log
	text := strings.Replace(archivetest.SoundScenario, "gates:", "nodes: {count: 10}\ngates:\n  - {name: beats, objective: missed-heartbeats, max: 0}", 1)
	for name, text := range map[string][]byte{result.ScenarioFile: []byte(text), result.TimelineFile: nil} {
		if err := os.WriteFile(filepath.Join(young, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	o := judged(t, young)
	if o.code != exitcode.NoData || o.said[0] != "run.json is missing: the run was killed while it started, or the file was lost" || o.result.Run.Scenario != "sound" {
		t.Errorf("exit code %d, %q of %+v", o.code, o.said, o.result.Run)
	}
	page, err := os.ReadFile(filepath.Join(young, result.HTMLFile))
	if err != nil {
		t.Fatal(err)
	}
	for _, wrong := range []string{"simulated no nodes", "no nodes were simulated", "sent no requests", "had no request loads", "measured itself: 0"} {
		if all := strings.Join(o.said, "\n") + string(page); strings.Contains(all, wrong) {
			t.Errorf("the report of a killed run says %q", wrong)
		}
	}
	// Every byte of the log may be lost.
	for _, segment := range []string{"tsdb/wal/00000000"} {
		file := filepath.Join(young, segment)
		log, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, cut := range [][]byte{nil, log[:1], log[:len(log)/2], log[:len(log)-1], make([]byte, len(log)), append(bytes.Clone(log[:len(log)/2]), make([]byte, len(log)/2)...)} {
			if err := os.WriteFile(file, cut, 0o600); err != nil {
				t.Fatal(err)
			}
			if o := weighed(t, young); o.code != exitcode.NoData {
				t.Errorf("a log of %d bytes: exit code %d, %q", len(cut), o.code, o.said)
			}
		}
	}
}

// TestDamagedRunDoesNotPass covers a directory in place of a file. This test covers the
// directories of an archive, and foreign files.
func TestMalformedArchiveDoesNotPass(t *testing.T) {
	t.Parallel()
	whole := archivetest.SoundRun(t)
	blocks, err := filepath.Glob(filepath.Join(whole, "tsdb", "*"))
	if err != nil || len(blocks) != 1 {
		t.Fatal(blocks, err)
	}
	block := filepath.Join("tsdb", filepath.Base(blocks[0]))
	file := func(path string) error {
		return errors.Join(os.RemoveAll(path), os.WriteFile(path, []byte("x"), 0o600))
	}
	for what, do := range map[string]func(dir string) error{
		"no archive":             func(dir string) error { return os.RemoveAll(filepath.Join(dir, "tsdb")) },
		"an empty archive":       func(dir string) error { return os.RemoveAll(filepath.Join(dir, block)) },
		"a file for the archive": func(dir string) error { return file(filepath.Join(dir, "tsdb")) },
		"a file for the block":   func(dir string) error { return file(filepath.Join(dir, block)) },
		"a file for the chunks":  func(dir string) error { return file(filepath.Join(dir, block, "chunks")) },
		"no chunks":              func(dir string) error { return os.RemoveAll(filepath.Join(dir, block, "chunks")) },
		"a block too many": func(dir string) error {
			return os.CopyFS(filepath.Join(dir, "tsdb", "01M80YMTZWY5PQC185PF0YAR4S"), os.DirFS(filepath.Join(dir, block)))
		},
		"a link to itself": func(dir string) error { return os.Symlink("..", filepath.Join(dir, "tsdb", "loop")) },
	} {
		for _, digested := range []bool{true, false} {
			dir := archivetest.CopyDir(t, whole)
			if err := do(dir); err != nil {
				t.Fatal(err)
			}
			if !digested {
				forget(t, dir)
			}
			o := weighed(t, dir)
			if extra := what == "a block too many" || what == "a link to itself"; !digested && extra {
				continue // it removes nothing
			}
			if o.code != exitcode.NoData || !o.names("tsdb") {
				t.Errorf("%s (digests: %v): exit code %d, %q", what, digested, o.code, o.said)
			}
		}
	}
}

// A path that is not a run's directory is a usage error.
func TestNonRunDirectoryIsUsageError(t *testing.T) {
	dir := t.TempDir()
	for _, path := range []string{dir, filepath.Join(dir, "gone"), written(t, "file", "x"), "/dev/null"} {
		for name, o := range map[string]outcome{
			"report": outcomeOf(Judge(t.Context(), path)), "gate": outcomeOf(By(t.Context(), path, nil)),
		} {
			if o.code != exitcode.Usage || len(o.said) != 1 || !strings.HasPrefix(o.said[0], path+": ") {
				t.Errorf("%s %s: exit code %d, %q", name, path, o.code, o.said)
			}
		}
	}
}
