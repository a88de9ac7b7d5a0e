package web

import (
	"errors"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stormglass/stormglass/loadgen/internal/run"
	"github.com/stormglass/stormglass/loadgen/internal/rundir"
	"github.com/stormglass/stormglass/loadgen/internal/timeline"
	"github.com/stormglass/stormglass/loadgen/result"
)

// The server creates the page again only after a pause. The pause grows with the time to create the page, up to a
// limit.
func TestPageIsMadeSeldom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var p pages
		made, takes := 0, 10*time.Millisecond
		write := func() ([]byte, error) {
			made++
			time.Sleep(takes)
			return []byte("page"), nil
		}
		get := func(want int) {
			t.Helper()
			announced := p.next()
			if _, version, err := p.get(write); err != nil || version != want || made != want || announced != want {
				t.Errorf("version %d of %d, announced %d, %v; want %d", version, made, announced, err, want)
			}
		}
		get(1)
		get(1)
		time.Sleep(pageEvery)
		takes = 200 * time.Millisecond
		get(2)
		time.Sleep(9 * time.Second)
		get(2)
		time.Sleep(time.Second)
		takes = 2 * time.Second
		get(3)
		time.Sleep(maxRest - time.Second)
		get(3)
		time.Sleep(time.Second)
		get(4)
		time.Sleep(time.Hour)
		if _, _, err := p.get(func() ([]byte, error) { return nil, errors.New("torn") }); err == nil {
			t.Error("get returns no error, want the error of write")
		}
		get(5)
	})
}

// The page of a run shows its gates and its phases so far, including the current phase.
func TestPageOfAHalfRun(t *testing.T) {
	s, _ := serve(t)
	dir := t.TempDir()
	began := time.Now().UTC().Add(-time.Minute)
	text := "apiVersion: stormglass/v1alpha1\nkind: Scenario\nname: half\nphases: [{name: first, for: 20s}, {name: second, for: 5m}]\n" +
		"gates: [{name: mutating, objective: mutating-latency, max: 1s}]\n"
	if err := rundir.WriteFile(dir+"/"+result.ScenarioFile, []byte(text)); err != nil {
		t.Fatal(err)
	}
	if err := rundir.WriteInfo(dir, result.Run{ID: "0123456789", Scenario: "half", Started: began}); err != nil {
		t.Fatal(err)
	}
	events, err := timeline.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer events.Close()
	for _, e := range []result.Event{
		{Time: began, Kind: result.EventPhaseStart, Name: "first"}, {Time: began.Add(20 * time.Second), Kind: result.EventPhaseEnd, Name: "first"},
		{Time: began.Add(21 * time.Second), Kind: result.EventPhaseStart, Name: "second"},
	} {
		if err := events.Append(e); err != nil {
			t.Fatal(err)
		}
	}
	page, err := s.write(t.Context(), run.Snapshot{
		Scenario: "half", Dir: dir, Phase: "second", Gates: 1, Phases: []run.PhaseState{{Name: "first", Took: 20 * time.Second}, {Name: "second", Now: true}},
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"RUNNING", "Phase second is running. The gates are judged at the end.", ">first<", ">second<", "mutating", "PENDING", "≤ 1 s"} {
		if !strings.Contains(string(page), want) {
			t.Errorf("the page does not contain %q", want)
		}
	}
	if page, err = s.write(t.Context(), run.Snapshot{}); err != nil || !strings.Contains(string(page), "are starting") {
		t.Errorf("page before the start of the run: %v", err)
	}
}

// After the environment has failed, the page shows the reason, and has no buttons for the phase that was in progress.
func TestPageOfAFailedRun(t *testing.T) {
	n := run.Snapshot{
		Phase: "storm", Length: time.Minute, Nodes: 10, NodesReady: 10,
		Phases: []run.PhaseState{{Name: "storm"}}, Failure: "cluster mine is gone",
	}
	want := state{Word: "FAILED", Line: "failed: cluster mine is gone", Steps: []string{}}
	if got := stateOf(n, nil); !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
	if got := headline(n); got != "The environment failed: cluster mine is gone" {
		t.Error(got)
	}
}
