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

// TestResume: finished trials are kept when a plane dies, and are not repeated.
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
		t.Fatalf("exit %d, %d trials: %v", first.ExitCode, len(first.Trials), err)
	}
	s.o.Resume, s.o.Out = dir, ""
	again, _, err := s.run(t.Context())
	if err != nil || again.Answer != string(Found) || len(p.loads) != len(again.Trials)+1 || len(again.Notes) > 0 {
		t.Errorf("%s, %d trials of %d, %v: %v", again.Answer, len(again.Trials), len(p.loads), again.Notes, err)
	}
	s.OtherGenerator = func(result.Host, string) string { return "on another machine" }
	if _, _, err := s.run(t.Context()); exitcode.Of(err) != exitcode.Usage || !strings.Contains(err.Error(), "the earlier trials ran on another machine") {
		t.Errorf("resumed elsewhere: %v", err)
	}
	s.OtherGenerator = func(result.Host, string) string { return "" }
	s.o.Overrides = []string{"nodes.count=5"}
	if _, _, err := s.run(t.Context()); exitcode.Of(err) != exitcode.Usage || !strings.Contains(err.Error(), "did not have the setting nodes.count=5 (leave it out)") {
		t.Errorf("resumed with other settings: %v", err)
	}
	s.o.Overrides, s.o.Scenario.Capacity.To.Value = nil, 4000
	if _, _, err := s.run(t.Context()); exitcode.Of(err) != exitcode.Usage || !strings.Contains(err.Error(), "from 10 to 5000") {
		t.Errorf("resumed with another range: %v", err)
	}
	s.o.Scenario.Capacity.To.Value = 5000
	s.o.Scenario.Gates[0].Name = "other"
	if _, _, err := s.run(t.Context()); exitcode.Of(err) != exitcode.Usage || !strings.Contains(err.Error(), "the scenario has changed") {
		t.Errorf("resumed with other gates: %v", err)
	}
}

// A search is not resumed with other conditions that end trials, whether the flag or the rules file has changed.
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
		t.Errorf("resumed with the same conditions: %v", err)
	}
	other := searched(t, plane{capacity: 700, spread: 0.03})
	if got, err := Compare([2]string{dir, other}); err != nil || len(got.Differences) != 1 || !strings.HasPrefix(got.Differences[0].A, "errors=50%, alert=Own, rules ") || got.Differences[0].B != "none" {
		t.Errorf("compared with a search without conditions: %+v, %v", got.Differences, err)
	}
	refused := func(name string) {
		if _, _, err := next.run(t.Context()); exitcode.Of(err) != exitcode.Usage || !strings.Contains(err.Error(), "errors=50% alert=Own rules ") || !strings.Contains(err.Error(), "(use the same --abort-on and --abort-rules)") {
			t.Errorf("resumed with other %s: %v", name, err)
		}
	}
	write(strings.Replace(own, "== 0", "== 1", 1))
	refused("rules")
	write(own)
	next.o.Fuse.AbortOn = nil
	refused("flags")
}

// A search that used all its trials says how to continue, and can be continued.
func TestResumeWithMoreTrials(t *testing.T) {
	s := newSession(t, &plane{capacity: 700, spread: 0.03})
	s.o.Most = 5
	c, dir, err := s.run(t.Context())
	if err != nil || c.Answer != string(Unfinished) || !strings.Contains(strings.Join(c.Notes, "\n"), "`--trials 7 --resume "+dir+"`") {
		t.Fatalf("%s, %q: %v", c.Answer, c.Notes, err)
	}
	next := again(s, dir)
	next.o.Most = 40
	if c, _, err = next.run(t.Context()); err != nil || c.Answer != string(Found) || len(c.Notes) > 0 {
		t.Errorf("%s, %q: %v", c.Answer, c.Notes, err)
	}
}

// A search that the generator ended can continue, although its last trial held: the generator may manage more by then.
func TestResumeAfterTheGeneratorEndedFirst(t *testing.T) {
	p := plane{capacity: 700, spread: 0.03, saturatedFrom: 300}
	s := newSession(t, &p)
	c, dir, err := s.run(t.Context())
	if err != nil || c.Answer != string(GeneratorFirst) || c.Trials[len(c.Trials)-1].Outcome != "good" {
		t.Fatalf("%s, %+v: %v", c.Answer, c.Trials, err)
	}
	p.saturatedFrom = 0
	next := again(s, dir)
	if c, _, err = next.run(t.Context()); err != nil || c.Answer != string(Found) {
		t.Errorf("%s after %d trials: %v", c.Answer, len(c.Trials), err)
	}
}

// A resumed search keeps its trials if it cannot be written.
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
		t.Errorf("%v", err)
	}
	for _, name := range []string{"trial-01", result.CapacityFile} {
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			t.Error(err)
		}
	}
}

// A search in progress cannot be resumed a second time.
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
		t.Errorf("%s: %v", c.Answer, err)
	}
	if exitcode.Of(other) != exitcode.Usage || !strings.Contains(other.Error(), "another loadgen process uses this directory") {
		t.Errorf("the other one: %v", other)
	}
}

// If the binary is rebuilt during the search, the search ends. It can continue with the binary of its trials.
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
		t.Fatalf("exit %d after %d trials, %q: %v", c.ExitCode, len(c.Trials), c.Notes, err)
	}
	p.fails = nil
	next := again(s, dir)
	if c, _, err = next.run(t.Context()); err != nil || c.Answer != string(Found) {
		t.Errorf("%s, %q: %v", c.Answer, c.Notes, err)
	}
	next = again(s, dir)
	next.o.Build = nil
	if err := write("another"); err != nil {
		t.Fatal(err)
	}
	if _, _, err = next.run(t.Context()); exitcode.Of(err) != exitcode.Usage || !strings.Contains(err.Error(), "the earlier trials used a different controlplane binary") {
		t.Errorf("resumed with another one: %v", err)
	}
}

// A search with another schema is neither resumed nor compared.
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
		t.Errorf("%v", err)
	}
}

// Resuming a search that had ended does not change its end time; otherwise it would seem to have overlapped with later
// searches.
func TestResumeOfWhatHasEnded(t *testing.T) {
	s := newSession(t, &plane{capacity: 700, spread: 0.03})
	first, dir, err := s.run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	next := again(s, dir)
	if c, _, err := next.run(t.Context()); err != nil || !c.Ended.Equal(first.Ended) || len(c.Trials) != len(first.Trials) {
		t.Errorf("ended %s, and before %s, %d trials: %v", c.Ended, first.Ended, len(c.Trials), err)
	}
}

// If the plane of the first trial dies, the logs that the error names are kept, and the search can be resumed.
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

// A resumed search that is interrupted before its first trial keeps all earlier files, and the error says so.
func TestInterruptedResumeKeepsAll(t *testing.T) {
	p := plane{capacity: 700, spread: 0.03, saturatedFrom: 1}
	s := newSession(t, &p)
	c, dir, err := s.run(t.Context())
	if err != nil || len(c.Trials) == 0 {
		t.Fatalf("%s: %v", c.Answer, err)
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
		t.Errorf("%v", err)
	}
	if after, err := os.ReadFile(filepath.Join(dir, result.CapacityFile)); err != nil || string(after) != string(before) {
		t.Errorf("an interrupted resume changed capacity.json: %v", err)
	}
}

// A missing controlplane binary is reported as missing, not as another binary.
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
	next.o.ControlPlane = "" // no binary is found next to a test
	c, _, err := next.run(t.Context())
	if err != nil || c.Build == "" {
		t.Errorf("build %q: %v", c.Build, err)
	}
}
