package scenario

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stormglass/stormglass/loadgen/internal/recording"
)

const replayedRecording = `
apiVersion: stormglass/v1alpha1
kind: Scenario
name: again
phases:
  - name: a
    for: 10s
    load: [{name: tuesday, kind: replay, recording: %s}]
gates: [{name: errors, objective: request-errors, max: 5%%}]
`

// writeRecording writes a recording with one request a second, each by a different actor and in a different namespace.
func writeRecording(t *testing.T, file string, requests int) {
	t.Helper()
	h := recording.Header{Start: time.Unix(1e9, 0), Length: recording.Micros(requests) * 1e6, Requests: int64(requests), Source: "a test"}
	for i := range requests {
		h.Actors = append(h.Actors, recording.Actor{Name: fmt.Sprint("client-", i)})
	}
	err := recording.Write(file, h, func(write func(*recording.Request) error) error {
		for i := range requests {
			err := write(&recording.Request{
				At: recording.Micros(i) * 1e6, Actor: i, Verb: "get", Version: "v1", Resource: "configmaps", Namespace: fmt.Sprint("ns-", i), Name: "x", Code: 200,
			})
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestRecordingIsReadBesideTheScenarioAndCarriedWithIt(t *testing.T) {
	for _, name := range []string{"tuesday.recording", "tuesday.recording.gz"} {
		dir := t.TempDir()
		writeRecording(t, filepath.Join(dir, name), 5)
		write(t, filepath.Join(dir, "again.yaml"), fmt.Sprintf(replayedRecording, name))
		s, err := Read(filepath.Join(dir, "again.yaml"), nil)
		if err != nil {
			t.Fatal(err)
		}
		l := s.Loads()[0]
		if l.Speed != 1 || l.Copies != 1 || l.OnMissing != "fail" || len(l.Recorded.Entries) != 5 {
			t.Errorf("%+v", l.Replayed)
		}
		if got := l.NamespacesIn("run"); len(got) != 7 || got[0] != "run" || got[6] != "run-tuesday-6" {
			t.Errorf("namespaces %v: the run's, one of each of the recording, and one for objects in none", got)
		}
		if !l.Impersonates() || len(l.Users()) != 5 || l.Users()[0] != "stormglass:tenant:tuesday-0:client-0" {
			t.Errorf("users %v", l.Users())
		}
		elsewhere := t.TempDir()
		for name, data := range s.Bundle() {
			write(t, filepath.Join(elsewhere, name), string(data))
		}
		text, err := s.Resolved()
		if err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(elsewhere, "scenario.yaml"), string(text))
		again, err := Read(filepath.Join(elsewhere, "scenario.yaml"), nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := again.Loads()[0].Recorded; len(got.Entries) != 5 || !slices.Equal(got.Entries, l.Recorded.Entries) {
			t.Errorf("after a copy to another directory, the replay has %d requests", len(got.Entries))
		}
		if len(again.Gates) != len(s.Gates) {
			t.Errorf("after a copy to another directory, the scenario has %d gates, before %d", len(again.Gates), len(s.Gates))
		}
	}
}

func write(t *testing.T, file, text string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestEveryReplayIsGatedByItsFidelity(t *testing.T) {
	gates := func(text string) (names []string) {
		s, err := Parse("again.yaml", []byte(text), nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, g := range s.Gates {
			names = append(names, fmt.Sprintf("%s %s %s", g.Name, g.Objective, g.Max))
		}
		return names
	}
	text := fmt.Sprintf(replayedRecording, "x")
	want := []string{"errors request-errors 5%", "tuesday-rate-error replay-rate-error 1%", "tuesday-dispersion-error replay-dispersion-error 10%"}
	if got := gates(text); !slices.Equal(got, want) {
		t.Errorf("gates %q, want %q", got, want)
	}
	own := strings.Replace(text, "gates: [", "gates: [{name: mine, objective: replay-rate-error, max: 2%}, ", 1)
	want = []string{"mine replay-rate-error 2%", "errors request-errors 5%", "tuesday-dispersion-error replay-dispersion-error 10%"}
	if got := gates(own); !slices.Equal(got, want) {
		t.Errorf("gates %q, want %q", got, want)
	}
}

func TestReplaysThatCannotBe(t *testing.T) {
	dir := t.TempDir()
	writeRecording(t, filepath.Join(dir, "ok.recording"), 50)
	write(t, filepath.Join(dir, "empty.recording"), "")
	write(t, filepath.Join(dir, "old.recording"), `{"recording":99,"start":"2026-01-01T00:00:00Z","length":1,"requests":0,"actors":[],"source":"x","hashed":false}`)
	write(t, filepath.Join(dir, "none.recording"), `{"recording":1,"start":"2026-01-01T00:00:00Z","length":1,"requests":0,"actors":[],"source":"x","hashed":false}`)
	for fields, want := range map[string]string{
		"recording: missing.recording":               "again.yaml:8: phases.a.load.tuesday.recording: cannot read",
		"recording: empty.recording":                 "it is empty",
		"recording: old.recording":                   "format 99 is unknown",
		"recording: none.recording":                  "the recording has no requests",
		"speed: 2":                                   "again.yaml:8: phases.a.load.tuesday.recording: the replay has no recording (write recording: FILE, which `loadgen record audit` writes)",
		"recording: ok.recording, speed: 1000":       "again.yaml:8: phases.a.load.tuesday.speed: 1000 is out of bounds (from 0.01 to 100)",
		"recording: ok.recording, speed: 0":          "again.yaml:8: phases.a.load.tuesday.speed: 0 would mean the default: 1 (write a value greater than 0)",
		"recording: ok.recording, copies: 0":         "again.yaml:8: phases.a.load.tuesday.copies: 0 would mean the default: 1 (write a value greater than 0)",
		"recording: ok.recording, copies: 101":       "again.yaml:8: phases.a.load.tuesday.copies: 101 is out of bounds (from 1 to 100)",
		"recording: ok.recording, copies: 50":        "again.yaml:8: phases.a.load.tuesday.copies: 50 copies of a recording with 50 clients exceed the maximum of 2000 clients in a replay (at most 40)",
		"recording: ok.recording, copies: 20":        "again.yaml:8: phases.a.load.tuesday.copies: 20 copies of a recording with 50 namespaces exceed the maximum of 1000 namespaces in a replay (at most 19)",
		"recording: ok.recording, onMissing: ignore": `again.yaml:8: phases.a.load.tuesday.onMissing: unknown value "ignore" (one of fail, drop)`,
		"recording: ok.recording, rate: 5/s":         "again.yaml:8: phases.a.load.tuesday: a replay has the rate of its recording (leave out rate and shape)",
	} {
		text := strings.Replace(replayedRecording, "recording: %s", fields, 1)
		write(t, filepath.Join(dir, "again.yaml"), strings.ReplaceAll(text, "%%", "%"))
		_, err := Read(filepath.Join(dir, "again.yaml"), nil)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v, want %s", fields, err, want)
		}
	}
}

// Scenarios of earlier releases call the recording a trace.
func TestTraceIsTheFormerNameOfRecording(t *testing.T) {
	dir := t.TempDir()
	writeRecording(t, filepath.Join(dir, "x.trace.gz"), 5)
	write(t, filepath.Join(dir, "again.yaml"), strings.Replace(fmt.Sprintf(replayedRecording, "x.trace.gz"), "recording:", "trace:", 1))
	s, err := Read(filepath.Join(dir, "again.yaml"), nil)
	if err != nil {
		t.Fatal(err)
	}
	const want = "again.yaml:8: phases.a.load.tuesday.trace: the field trace is deprecated (rename it to recording)"
	if got := strings.Join(s.Warnings(), "\n"); !strings.Contains(got, want) {
		t.Errorf("warnings %q, want %q", got, want)
	}
}
