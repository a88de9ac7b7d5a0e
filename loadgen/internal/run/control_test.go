package run

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/stormglass/stormglass/internal/exitcode"
	"github.com/stormglass/stormglass/loadgen/internal/archive"
	"github.com/stormglass/stormglass/loadgen/internal/load"
	"github.com/stormglass/stormglass/loadgen/internal/rundir"
	"github.com/stormglass/stormglass/loadgen/result"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

// A user can end a phase of fixed length and a phase that waits for a condition.
func TestEndPhaseEndsIt(t *testing.T) {
	s := parse(t, "phases: [{name: p, for: 1h}, {name: q, for: 1h}]")
	// A scenario must not have a condition that never holds, so the test sets it here.
	s.Phases[1].For, s.Phases[1].Until, s.Phases[1].Within = 0, scenario.Until{Text: "podsReady"}, s.Phases[1].For
	r := underway(t, s)
	synctest.Test(t, func(t *testing.T) {
		for i := range s.Phases {
			p, began := &s.Phases[i], time.Now()
			r.phases.steering.beginPhase(p.Name, began)
			go func() {
				time.Sleep(time.Minute)
				if err := r.phases.steering.endPhaseEarly(""); err != nil {
					t.Error(err)
				}
				if err := r.phases.steering.endPhaseEarly(p.Name); err == nil || !strings.Contains(err.Error(), "already ending") {
					t.Errorf("second endPhaseEarly: %v", err)
				}
			}()
			met, err := r.phases.through(t.Context(), p, began)
			synctest.Wait()
			if took := time.Since(began); met || err != nil || took != time.Minute {
				t.Errorf("phase %s: condition met: %v, %v after %s", p.Name, met, err, took)
			}
			if _, early := r.phases.steering.endPhase(time.Now()); !early {
				t.Errorf("phase %s: endPhase does not report that the user ended it", p.Name)
			}
		}
	})
}

// A pause counts in each phase that it overlaps, with the time in that phase.
func TestPauseCountsByPhase(t *testing.T) {
	r := underway(t, parse(t, "phases: [{name: p, for: 1m}]"))
	synctest.Test(t, func(t *testing.T) {
		s := newSteering(r.journal, load.NewPause(), nil, func() {})
		if err := s.pauseLoad(); err == nil {
			t.Error("pauseLoad succeeded before the first phase")
		}
		s.beginPhase("p", time.Now())
		do := func(f func() error) {
			t.Helper()
			if err := f(); err != nil {
				t.Error(err)
			}
			time.Sleep(10 * time.Second)
		}
		do(s.pauseLoad)
		do(s.resumeLoad)
		do(s.pauseLoad)
		if err := s.pauseLoad(); !errors.Is(err, ErrPaused) {
			t.Errorf("second pauseLoad: %v, want ErrPaused", err)
		}
		if paused, early := s.endPhase(time.Now()); paused != 20*time.Second || early {
			t.Errorf("phase p: paused for %s, ended early %v; want 20s, false", paused, early)
		}
		time.Sleep(time.Hour) // between phases
		s.beginPhase("q", time.Now())
		time.Sleep(10 * time.Second)
		do(s.resumeLoad)
		if paused, _ := s.endPhase(time.Now()); paused != 10*time.Second {
			t.Errorf("phase q: paused for %s, want 10s", paused)
		}
		if err := s.endPhaseEarly(""); err == nil {
			t.Error("endPhaseEarly succeeded after the last phase")
		}
	})
}

func TestControlWithoutARun(t *testing.T) {
	var c Control
	for name, command := range map[string]func() error{"pause": c.Pause, "resume": c.Resume, "end": func() error { return c.EndPhase("") }} {
		if err := command(); !errors.Is(err, errNoRun) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := c.Recorded(t.Context(), func(_ context.Context, a *archive.Archive) error {
		if a != nil {
			t.Error("Recorded passes an archive, although no run is in progress")
		}
		return errNoRun
	}); err != errNoRun {
		t.Error(err)
	}
	c.detach()
	var none *Control
	none.attach(nil, nil)
	none.detach()
}

// When the run closes the archive, Recorded cancels the readers and calls them again without the archive.
func TestReadersEndBeforeTheArchive(t *testing.T) {
	var c Control
	c.attach(&steering{}, archive.Evaluating(nil))
	reading, over, read := make(chan struct{}), false, make(chan error)
	go func() {
		read <- c.Recorded(t.Context(), func(ctx context.Context, a *archive.Archive) error {
			if a == nil {
				return ctx.Err()
			}
			close(reading)
			<-ctx.Done()
			over = true
			return ctx.Err()
		})
	}()
	<-reading
	c.detach()
	if !over {
		t.Error("detach returned while a reader used the archive")
	}
	if err := <-read; err != nil {
		t.Errorf("Recorded returned an error when the run ended: %v", err)
	}
}

// keys is a user who presses keys when phases begin.
type keys struct {
	silent
	at map[string]func() error // functions to call, by the step at which to call them
	t  *testing.T
}

func (k *keys) Step(line string) {
	for words, press := range k.at {
		if strings.HasPrefix(line, words) {
			if err := press(); err != nil {
				k.t.Error(err)
			}
		}
	}
}

// Gates over a phase that the user paused or ended have no data, and the report says why. The run judges gates over
// other phases.
func TestSteeredPhasesAreNotJudged(t *testing.T) {
	s := parse(t, `
phases: [{name: paused, for: 1s}, {name: ended, for: 1h}, {name: whole, for: 1s}]
gates:
- {name: of-paused, expr: sum(myapp_sessions), max: 8, over: [paused]}
- {name: of-ended, expr: sum(myapp_sessions), max: 8, over: [ended]}
- {name: duration, objective: phase-duration, max: 1h, over: [ended]}
- {name: of-whole, expr: sum(myapp_sessions), max: 8, over: [whole]}
`)
	control := &Control{}
	pressed := &keys{t: t, at: map[string]func() error{
		"phase paused: ": func() error { return errors.Join(control.Pause(), control.Resume()) },
		"phase ended: ":  func() error { return control.EndPhase("ended") },
	}}
	sessions := prometheus.NewGauge(prometheus.GaugeOpts{Name: "myapp_sessions"})
	sessions.Set(7)
	r := underwayOf(t, s, console{Progress: pressed}, sessions)
	control.attach(r.display.steering, nil)
	var err error
	if r.info.Files, err = r.dir.writeScenario(s); err != nil {
		t.Fatal(err)
	}
	if err := r.phases.run(t.Context()); err != nil {
		t.Fatal(err)
	}
	control.detach()
	res := judged(t, r)
	for i, want := range []result.Verdict{result.NoData, result.NoData, result.NoData, result.Pass} {
		if g := res.Gates[i]; g.Verdict != want {
			t.Errorf("gate %s: %s (%s), want %s", g.Name, g.Verdict, g.Detail, want)
		}
	}
	if res.ExitCode != exitcode.NoData {
		t.Errorf("exit code %d, want that for no data", res.ExitCode)
	}
	notes := strings.Join(res.Notes, "\n")
	for _, want := range []string{"load was paused by the user for", "phase ended was ended early by the user, after"} {
		if !strings.Contains(notes, want) {
			t.Errorf("the notes do not contain %q: %s", want, notes)
		}
	}
	rec, err := rundir.Open(r.dir.Path)
	if err != nil {
		t.Fatal(err)
	}
	defer rec.Close()
	var told []string
	for _, e := range rec.Timeline {
		if e.Kind == result.EventNote {
			told = append(told, e.Name)
		}
	}
	if got := strings.Join(told, ", "); got != "load paused, load resumed, phase ended early" {
		t.Errorf("the timeline contains %s", got)
	}
}
