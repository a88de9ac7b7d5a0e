package capacity

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stormglass/stormglass/internal/exitcode"
	"github.com/stormglass/stormglass/loadgen/internal/run"
	"github.com/stormglass/stormglass/loadgen/internal/series"
	"github.com/stormglass/stormglass/loadgen/result"
)

// again returns a session that resumes s.
func again(s session, dir string) session {
	next := session{o: s.o, Series: series.Series{Member: s.Member, OtherGenerator: s.OtherGenerator}, uses: s.uses}
	next.o.Resume = dir
	return next
}

// TestResume checks that a resumed search keeps the trials from before a plane died, and does not repeat them.
func TestResume(t *testing.T) {
	p := plane{capacity: 700, fails: func(n int) error {
		if n == 6 {
			return exitcode.Environmentf("the control plane ended")
		}
		return nil
	}}
	s := newSession(t, &p)
	first, dir, err := s.run(t.Context())
	if err != nil || first.ExitCode != exitcode.Environment || len(first.Trials) != 5 {
		t.Fatalf("exit code %d after %d trials (%v), want %d after 5", first.ExitCode, len(first.Trials), err, exitcode.Environment)
	}
	s.o.Resume, s.o.Out = dir, ""
	again, _, err := s.run(t.Context())
	if err != nil || again.Answer != string(Found) || len(p.loads) != len(again.Trials)+1 || len(again.Notes) > 0 {
		t.Errorf("answer %q, %d of %d trials in the result, notes %q (%v); want found, all trials except the failed one, no notes", again.Answer, len(again.Trials), len(p.loads), again.Notes, err)
	}
	s.OtherGenerator = func(result.Host, string) string { return "on another machine" }
	if _, _, err := s.run(t.Context()); exitcode.Of(err) != exitcode.Usage || !strings.Contains(err.Error(), "the earlier trials ran on another machine") {
		t.Errorf("resume on another machine: error %v", err)
	}
	s.OtherGenerator = func(result.Host, string) string { return "" }
	s.o.Overrides = []string{"nodes.count=5"}
	if _, _, err := s.run(t.Context()); exitcode.Of(err) != exitcode.Usage || !strings.Contains(err.Error(), "did not have the setting nodes.count=5 (leave it out)") {
		t.Errorf("resume with other settings: error %v", err)
	}
	s.o.Overrides, s.o.Labels = nil, map[string]string{"team": "web"}
	if _, _, err := s.run(t.Context()); exitcode.Of(err) != exitcode.Usage || !strings.Contains(err.Error(), "the labels cannot be changed after the first trial (remove --label)") {
		t.Errorf("resume with other labels: error %v", err)
	}
	s.o.Labels, s.o.Scenario.Capacity.To.Value = nil, 4000
	if _, _, err := s.run(t.Context()); exitcode.Of(err) != exitcode.Usage || !strings.Contains(err.Error(), "from 10 to 5000") {
		t.Errorf("resume with another range: error %v", err)
	}
	s.o.Scenario.Capacity.To.Value = 5000
	s.o.Scenario.Gates[0].Name = "other"
	if _, _, err := s.run(t.Context()); exitcode.Of(err) != exitcode.Usage || !strings.Contains(err.Error(), "the scenario has changed") {
		t.Errorf("resume with other gates: error %v", err)
	}
}

// A search cannot be resumed with other abort conditions, whether the flag or the rules file has changed.
func TestOtherConditionsThatEndTrials(t *testing.T) {
	s := newSession(t, &plane{capacity: 700, spread: 0.03})
	s.o.Fuse = run.Fuse{AbortOn: []string{"errors=50%", "alert=Own"}, Rules: filepath.Join(t.TempDir(), "rules.yaml")}
	write := func(rules string) {
		if err := os.WriteFile(s.o.Fuse.Rules, []byte(rules), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	own := "groups: [{name: own, rules: [{alert: Own, expr: up == 0}]}]"
	write(own)
	_, dir, err := s.run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	next := again(s, dir)
	if _, _, err := next.run(t.Context()); err != nil {
		t.Errorf("resume with the same conditions: %v", err)
	}
	other := searched(t, plane{capacity: 700, spread: 0.03})
	if got, err := Compare([2]string{dir, other}); err != nil || len(got.Differences) != 1 || !strings.HasPrefix(got.Differences[0].A, "errors=50%, alert=Own, rules ") || got.Differences[0].B != "none" {
		t.Errorf("Compare with a search without conditions: differences %+v, error %v", got.Differences, err)
	}
	refused := func(name string) {
		if _, _, err := next.run(t.Context()); exitcode.Of(err) != exitcode.Usage || !strings.Contains(err.Error(), "errors=50% alert=Own rules ") || !strings.Contains(err.Error(), "(use the same --abort-on and --abort-rules)") {
			t.Errorf("resume with other %s: error %v", name, err)
		}
	}
	write(strings.Replace(own, "== 0", "== 1", 1))
	refused("rules")
	write(own)
	next.o.Fuse.AbortOn = nil
	refused("flags")
}

// If a search has used all its trials, its notes say how to resume it. The search can be resumed in this way.
func TestResumeWithMoreTrials(t *testing.T) {
	s := newSession(t, &plane{capacity: 700, spread: 0.03})
	s.o.Most = 5
	c, dir, err := s.run(t.Context())
	if err != nil || c.Answer != string(Unfinished) || !strings.Contains(strings.Join(c.Notes, "\n"), "`--trials 7 --resume "+dir+"`") {
		t.Fatalf("answer %q, notes %q (%v); want unfinished and a note with --trials 7", c.Answer, c.Notes, err)
	}
	next := again(s, dir)
	next.o.Most = 40
	if c, _, err = next.run(t.Context()); err != nil || c.Answer != string(Found) || len(c.Notes) > 0 {
		t.Errorf("resumed search: answer %q, notes %q (%v); want found, no notes", c.Answer, c.Notes, err)
	}
}

// A search that ended because the generator was the limit can be resumed, even if its last trial was good: the
// generator may be able to send more now.
func TestResumeAfterTheGeneratorEndedFirst(t *testing.T) {
	p := plane{capacity: 700, spread: 0.03, saturatedFrom: 300}
	s := newSession(t, &p)
	c, dir, err := s.run(t.Context())
	if err != nil || c.Answer != string(GeneratorFirst) || c.Trials[len(c.Trials)-1].Outcome != "good" {
		t.Fatalf("answer %q (%v), want %q after a good trial; trials %+v", c.Answer, err, GeneratorFirst, c.Trials)
	}
	p.saturatedFrom = 0
	next := again(s, dir)
	if c, _, err = next.run(t.Context()); err != nil || c.Answer != string(Found) {
		t.Errorf("answer %q after %d trials (%v), want found", c.Answer, len(c.Trials), err)
	}
}

// A resumed search whose files cannot be written keeps its earlier trials.
func TestResumeOnAFullDisk(t *testing.T) {
	s := newSession(t, &plane{capacity: 700, spread: 0.03})
	_, dir, err := s.run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	page := filepath.Join(dir, result.CapacityHTMLFile)
	if err := errors.Join(os.Remove(page), os.MkdirAll(filepath.Join(page, "in-the-way"), 0o700)); err != nil {
		t.Fatal(err)
	}
	next := again(s, dir)
	if _, _, err := next.run(t.Context()); exitcode.Of(err) != exitcode.Environment {
		t.Errorf("error %v, want exit code %d", err, exitcode.Environment)
	}
	for _, name := range []string{"trial-01", result.CapacityFile} {
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			t.Error(err)
		}
	}
}

// A search cannot be resumed while it runs.
func TestOneAtATime(t *testing.T) {
	p := plane{capacity: 700, spread: 0.03}
	s := newSession(t, &p)
	var other error
	p.fails = func(n int) error {
		if n == 3 {
			next := again(newSession(t, &plane{capacity: 700, spread: 0.03}), s.o.Out)
			_, _, other = next.run(t.Context())
		}
		return nil
	}
	if c, _, err := s.run(t.Context()); err != nil || c.Answer != string(Found) {
		t.Errorf("answer %q (%v), want found", c.Answer, err)
	}
	if exitcode.Of(other) != exitcode.Usage || !strings.Contains(other.Error(), "another loadgen process uses this directory") {
		t.Errorf("resume during the search: error %v", other)
	}
}

// A search ends if its binary is rebuilt in the meantime. It can be resumed with the binary of its trials.
func TestBinaryBuiltAnew(t *testing.T) {
	binary := filepath.Join(t.TempDir(), "controlplane")
	write := func(text string) error { return os.WriteFile(binary, []byte(text), 0o700) }
	p := plane{capacity: 700, spread: 0.03}
	s := newSession(t, &p)
	s.o.ControlPlane = binary
	s.o.Build = func(context.Context) error { return write("one") }
	p.fails = func(n int) error {
		if n == 3 {
			return write("another")
		}
		return nil
	}
	c, dir, err := s.run(t.Context())
	if err != nil || c.ExitCode != exitcode.NoData || len(c.Trials) != 3 || !strings.Contains(strings.Join(c.Notes, "\n"), binary+" was rebuilt during the runs") {
		t.Fatalf("exit code %d after %d trials, notes %q (%v); want %d after 3, and a note about the binary", c.ExitCode, len(c.Trials), c.Notes, err, exitcode.NoData)
	}
	p.fails = nil
	next := again(s, dir)
	if c, _, err = next.run(t.Context()); err != nil || c.Answer != string(Found) {
		t.Errorf("resumed search: answer %q, notes %q (%v); want found", c.Answer, c.Notes, err)
	}
	next = again(s, dir)
	next.o.Build = nil
	if err := write("another"); err != nil {
		t.Fatal(err)
	}
	if _, _, err = next.run(t.Context()); exitcode.Of(err) != exitcode.Usage || !strings.Contains(err.Error(), "the earlier trials used a different controlplane binary") {
		t.Errorf("resume with another binary: error %v", err)
	}
}

// Read refuses a search with another schema.
func TestReadsItsOwnSchema(t *testing.T) {
	s := newSession(t, &plane{capacity: 700, spread: 0.03})
	_, dir, err := s.run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, result.CapacityFile)
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(strings.Replace(string(text), result.CapacitySchema, "stormglass.capacity/v9", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Read(dir); exitcode.Of(err) != exitcode.Usage || !strings.Contains(err.Error(), `the file has the schema "stormglass.capacity/v9", but this loadgen reads `+result.CapacitySchema) {
		t.Errorf("Read: error %v, want a usage error about the schema", err)
	}
}

// Resuming a search that had ended does not change its end time. Otherwise it would seem to overlap with later
// searches.
func TestResumeOfWhatHasEnded(t *testing.T) {
	s := newSession(t, &plane{capacity: 700, spread: 0.03})
	first, dir, err := s.run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	next := again(s, dir)
	if c, _, err := next.run(t.Context()); err != nil || !c.Ended.Equal(first.Ended) || len(c.Trials) != len(first.Trials) {
		t.Errorf("ended at %s after %d trials (%v), want %s and %d", c.Ended, len(c.Trials), err, first.Ended, len(first.Trials))
	}
}

// If the plane of the first trial dies, its logs stay, and the error says how to resume the search.
func TestDeadPlaneKeepsItsLogs(t *testing.T) {
	s := newSession(t, &plane{})
	s.Member = func(_ context.Context, o run.Options) (result.Result, error) {
		if err := os.MkdirAll(filepath.Join(o.Out, "plane", "logs"), 0o700); err != nil {
			t.Fatal(err)
		}
		return result.Result{}, exitcode.Environmentf("the control plane ended")
	}
	if _, _, err := s.run(t.Context()); exitcode.Of(err) != exitcode.Environment || !strings.Contains(err.Error(), "`--resume "+s.o.Out+"`") {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(s.o.Out, "trial-01", "plane", "logs")); err != nil {
		t.Error(err)
	}
}

// A resumed search that is interrupted before its first new trial keeps all files, and the error says how to resume it.
func TestInterruptedResumeKeepsAll(t *testing.T) {
	p := plane{capacity: 700, spread: 0.03, saturatedFrom: 1}
	s := newSession(t, &p)
	c, dir, err := s.run(t.Context())
	if err != nil || len(c.Trials) == 0 {
		t.Fatalf("answer %q without trials: %v", c.Answer, err)
	}
	before, err := os.ReadFile(filepath.Join(dir, result.CapacityFile))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	next := again(s, dir)
	next.Member = func(context.Context, run.Options) (result.Result, error) {
		cancel()
		return result.Result{}, ctx.Err()
	}
	if _, _, err := next.run(ctx); exitcode.Of(err) != exitcode.NoData || !strings.Contains(err.Error(), "`--resume "+dir+"`") || strings.Contains(err.Error(), "nothing is left") {
		t.Errorf("error %v, want the command that resumes the search", err)
	}
	if after, err := os.ReadFile(filepath.Join(dir, result.CapacityFile)); err != nil || string(after) != string(before) {
		t.Errorf("the interrupted search changed capacity.json, or it is not readable (%v)", err)
	}
}

// A resumed search whose controlplane binary is missing does not report a different binary.
func TestResumeWithoutItsBinary(t *testing.T) {
	binary := filepath.Join(t.TempDir(), "controlplane")
	if err := os.WriteFile(binary, []byte("one"), 0o700); err != nil {
		t.Fatal(err)
	}
	s := newSession(t, &plane{capacity: 700, spread: 0.03})
	s.o.ControlPlane, s.o.Most = binary, 5
	_, dir, err := s.run(t.Context())
	if err := errors.Join(err, os.Remove(binary)); err != nil {
		t.Fatal(err)
	}
	next := again(s, dir)
	next.o.ControlPlane = "" // there is no controlplane binary next to a test binary
	c, _, err := next.run(t.Context())
	if err != nil || c.Build == "" {
		t.Errorf("Build = %q, error %v; want the digest of the earlier trials", c.Build, err)
	}
}
