package capacity

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stormglass/stormglass/internal/exitcode"
	"github.com/stormglass/stormglass/loadgen/result"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

// A trial that an abort condition ends is bad, and GaveWay contains the condition.
func TestTrialThatAConditionEndsDidNotHold(t *testing.T) {
	p := plane{capacity: 1e9}
	s := newSession(t, &p)
	s.o.Fuse.AbortOn = []string{"errors=50%"}
	failsOver(&s, func(r *result.Result) {
		r.Verdict, r.Run.Aborted = result.Fail, "abortOn: errors in phase hold, 3 s after its start: 62% is over 50%"
	}, nil)
	c, _, err := s.run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if c.Answer != string(Found) || len(c.GaveWay) != 1 || c.GaveWay[0].Gate != "abortOn: errors" || c.Held == nil || *c.Held > 300 {
		t.Errorf("answer %q, Held %v, GaveWay %+v; want found, at most 300, abortOn: errors", c.Answer, c.Held, c.GaveWay)
	}
	for _, trial := range c.Trials {
		if trial.Outcome == "bad" && !strings.Contains(trial.Why, "62% is over 50%") {
			t.Errorf("bad trial %d: reason %q lacks the condition", trial.Number, trial.Why)
		}
	}
}

func TestRangeOverTheRateIsRefusedBeforeAnyTrial(t *testing.T) {
	p := plane{capacity: 700}
	s := newSession(t, &p)
	s.o.Fuse.MaxRate = 200
	_, _, err := s.run(t.Context())
	want := "background.writes.rate=5000/s: known.yaml:"
	if exitcode.Of(err) != exitcode.Usage || !strings.HasPrefix(err.Error(), want) || !strings.Contains(err.Error(), "--max-rate is 200/s") || len(p.loads) > 0 {
		t.Errorf("got %v after %d trials", err, len(p.loads))
	}
}

// Run builds the binary only after it has checked the options of the trials, so the checks need no binary.
func TestCheckBeforeTheBuild(t *testing.T) {
	programs := t.TempDir()
	if err := os.WriteFile(filepath.Join(programs, "controlplane"), []byte("#!/bin/sh\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", programs)
	upgrade := strings.NewReplacer("phases: [{name: hold, for: 1s}]", `phases: [{name: hold, for: 60s, faults: [{kind: upgrade, to: "1.37"}]}]`,
		"name: known\n", "name: known\ncontrolPlane: {version: \"1.36\"}\n").Replace(text)
	p := plane{capacity: 700, spread: 0.03}
	s := newSession(t, &p)
	s.o.Read = func(sets []string) (*scenario.Scenario, error) {
		return scenario.Parse("known.yaml", []byte(upgrade), sets)
	}
	var err error
	if s.o.Scenario, err = s.o.Read(nil); err != nil {
		t.Fatal(err)
	}
	s.o.ControlPlane = filepath.Join(t.TempDir(), "not-built-yet")
	s.o.Build = func(context.Context) error { return os.WriteFile(s.o.ControlPlane, []byte("one"), 0o700) }
	if c, _, err := s.run(t.Context()); err != nil || c.Answer != string(Found) {
		t.Errorf("answer %q (%v), want found", c.Answer, err)
	}
}
