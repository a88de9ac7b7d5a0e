package ab

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stormglass/stormglass/internal/exitcode"
	"github.com/stormglass/stormglass/loadgen/result"
)

// A comparison in progress cannot be resumed a second time.
func TestOneAtATime(t *testing.T) {
	p := plane{spread: 0.01}
	s := options(t, &p)
	var other error
	p.fails = func(n int) error {
		if n == 3 {
			again := options(t, &plane{spread: 0.01})
			again.o.Resume = s.o.Out
			_, _, other = again.run(t.Context())
		}
		return nil
	}
	if c, _, err := s.run(t.Context()); err != nil || c.Answer != result.NotRegressed || len(c.Notes) > 0 {
		t.Errorf("%s, %q: %v", c.Answer, c.Notes, err)
	}
	if exitcode.Of(other) != exitcode.Usage || !strings.Contains(other.Error(), "another loadgen process uses this directory") {
		t.Errorf("the other one: %v", other)
	}
}

// If the binary is rebuilt during the comparison, the comparison ends. It can continue with the binary of its earlier
// pairs.
func TestBinaryBuiltAnew(t *testing.T) {
	binary := filepath.Join(t.TempDir(), "controlplane")
	write := func(text string) error { return os.WriteFile(binary, []byte(text), 0o700) }
	if err := write("one"); err != nil {
		t.Fatal(err)
	}
	p := plane{spread: 0.01, fails: func(n int) error {
		if n == 5 {
			return write("another")
		}
		return nil
	}}
	s := options(t, &p)
	s.o.B.ControlPlane = binary
	c, dir, err := s.run(t.Context())
	if err != nil || c.ExitCode != exitcode.NoData || len(c.Notes) != 1 || !strings.Contains(c.Notes[0], binary+" was rebuilt during the runs") {
		t.Fatalf("exit %d, %q: %v", c.ExitCode, c.Notes, err)
	}
	p.fails = nil
	if err := write("one"); err != nil {
		t.Fatal(err)
	}
	s.o.Resume, s.o.Out = dir, ""
	if c, _, err = s.run(t.Context()); err != nil || c.Answer != result.NotRegressed {
		t.Errorf("%s, %q: %v", c.Answer, c.Notes, err)
	}
}

// A side can be resumed under another name for the same thing, such as the old commit of a branch that has moved.
func TestResumeOfTheSameInOtherWords(t *testing.T) {
	begun := options(t, &plane{spread: 0.01, fails: func(n int) error {
		if n == 4 {
			return exitcode.EnvironmentError(errors.New("the plane died"))
		}
		return nil
	}})
	begun.o.B.Spec, begun.o.Labels = []string{"WatchList=false"}, map[string]string{"team": "core"}
	_, dir, err := begun.run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	again := options(t, &plane{spread: 0.01})
	again.o.Resume, again.o.B.Spec = dir, []string{"controlPlane.featureGates.WatchList=false"}
	again.o.Labels = map[string]string{"team": "web"}
	if _, _, err := again.run(t.Context()); exitcode.Of(err) != exitcode.Usage || !strings.Contains(err.Error(), "(remove --label)") {
		t.Errorf("resume with other labels: error %v", err)
	}
	again.o.Labels = nil
	if c, _, err := again.run(t.Context()); err != nil || c.Answer != result.NotRegressed || c.Labels["team"] != "core" {
		t.Errorf("%s, labels %v: %v", c.Answer, c.Labels, err)
	}
}

// A note reports the bounds that this machine cannot measure.
func TestUnseenPressureIsSaid(t *testing.T) {
	s := options(t, &plane{spread: 0.01, blind: true})
	if c, _, err := s.run(t.Context()); err != nil || len(c.Notes) != 1 || !strings.Contains(c.Notes[0], "--discard-io had no effect") {
		t.Errorf("%q: %v", c.Notes, err)
	}
}
