package scenario

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stormglass/stormglass/loadgen/internal/trace"
)

const replayedTrace = `
apiVersion: stormglass/v1alpha1
kind: Scenario
name: again
phases:
  - name: a
    for: 10s
    load: [{name: tuesday, kind: replay, trace: %s}]
gates: [{name: errors, objective: request-errors, max: 5%%}]
`

// writeTrace writes a trace with one request a second, each by a different actor and in a different namespace.
func writeTrace(t *testing.T, file string, requests int) {
	t.Helper()
	h := trace.Header{Start: time.Unix(1e9, 0), Length: trace.Micros(requests) * 1e6, Requests: int64(requests), Source: "a test"}
	for i := range requests {
		h.Actors = append(h.Actors, trace.Actor{Name: fmt.Sprint("client-", i)})
	}
	err := trace.Write(file, h, func(write func(*trace.Request) error) error {
		for i := range requests {
			err := write(&trace.Request{
				At: trace.Micros(i) * 1e6, Actor: i, Verb: "get", Version: "v1", Resource: "configmaps", Namespace: fmt.Sprint("ns-", i), Name: "x", Code: 200,
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

func TestTraceIsReadBesideTheScenarioAndCarriedWithIt(t *testing.T) {
	for _, name := range []string{"tuesday.trace", "tuesday.trace.gz"} {
		dir := t.TempDir()
		writeTrace(t, filepath.Join(dir, name), 5)
		write(t, filepath.Join(dir, "again.yaml"), fmt.Sprintf(replayedTrace, name))
		s, err := Read(filepath.Join(dir, "again.yaml"), nil)
		if err != nil {
			t.Fatal(err)
		}
		l := s.Loads()[0]
		if l.Speed != 1 || l.Copies != 1 || l.OnMissing != "fail" || len(l.Recorded.Entries) != 5 {
			t.Errorf("%+v", l.Replayed)
		}
		if got := l.NamespacesIn("run"); len(got) != 7 || got[0] != "run" || got[6] != "run-tuesday-6" {
			t.Errorf("namespaces %v: the run's, one of each of the trace, and one for objects in none", got)
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
			t.Errorf("%d requests after it was carried elsewhere", len(got.Entries))
		}
		if len(again.Gates) != len(s.Gates) {
			t.Errorf("%d gates after it was carried elsewhere, %d before", len(again.Gates), len(s.Gates))
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
	text := fmt.Sprintf(replayedTrace, "x")
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
	writeTrace(t, filepath.Join(dir, "ok.trace"), 50)
	write(t, filepath.Join(dir, "empty.trace"), "")
	write(t, filepath.Join(dir, "old.trace"), `{"trace":99,"start":"2026-01-01T00:00:00Z","length":1,"requests":0,"actors":[],"source":"x","hashed":false}`)
	write(t, filepath.Join(dir, "none.trace"), `{"trace":1,"start":"2026-01-01T00:00:00Z","length":1,"requests":0,"actors":[],"source":"x","hashed":false}`)
	for fields, want := range map[string]string{
		"trace: missing.trace":               "again.yaml:8: phases.a.load.tuesday.trace: cannot read",
		"trace: empty.trace":                 "it is empty",
		"trace: old.trace":                   "format 99 is unknown",
		"trace: none.trace":                  "the trace has no requests",
		"speed: 2":                           "again.yaml:8: phases.a.load.tuesday.trace: the replay has no trace (write trace: FILE, which `loadgen record audit` writes)",
		"trace: ok.trace, speed: 1000":       "again.yaml:8: phases.a.load.tuesday.speed: 1000 is out of bounds (from 0.01 to 100)",
		"trace: ok.trace, speed: 0":          "again.yaml:8: phases.a.load.tuesday.speed: 0 would mean the default: 1 (write a value greater than 0)",
		"trace: ok.trace, copies: 0":         "again.yaml:8: phases.a.load.tuesday.copies: 0 would mean the default: 1 (write a value greater than 0)",
		"trace: ok.trace, copies: 101":       "again.yaml:8: phases.a.load.tuesday.copies: 101 is out of bounds (from 1 to 100)",
		"trace: ok.trace, copies: 50":        "again.yaml:8: phases.a.load.tuesday.copies: 50 copies of a trace with 50 clients exceed the maximum of 2000 clients in a replay (at most 40)",
		"trace: ok.trace, copies: 20":        "again.yaml:8: phases.a.load.tuesday.copies: 20 copies of a trace with 50 namespaces exceed the maximum of 1000 namespaces in a replay (at most 19)",
		"trace: ok.trace, onMissing: ignore": `again.yaml:8: phases.a.load.tuesday.onMissing: unknown value "ignore" (one of fail, drop)`,
		"trace: ok.trace, rate: 5/s":         "again.yaml:8: phases.a.load.tuesday: a replay has the rate of its trace (leave out rate and shape)",
	} {
		text := strings.Replace(replayedTrace, "trace: %s", fields, 1)
		write(t, filepath.Join(dir, "again.yaml"), strings.ReplaceAll(text, "%%", "%"))
		_, err := Read(filepath.Join(dir, "again.yaml"), nil)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v, want %s", fields, err, want)
		}
	}
}

func TestReplayOfAnotherLengthThanItsTraceIsWarnedOf(t *testing.T) {
	dir := t.TempDir()
	writeTrace(t, filepath.Join(dir, "x.trace"), 21)
	for set, want := range map[string]string{
		"phases.a.for=20s": "",
		"phases.a.for=10s": "only the first 50% of the trace is replayed, because the load ends after 10s (to replay the whole trace, make the phase 21s long)",
		"phases.a.for=60s": "the trace ends after 20s, but the load ends only after 1m (make the phase shorter)",
	} {
		write(t, filepath.Join(dir, "again.yaml"), fmt.Sprintf(replayedTrace, "x.trace"))
		s, err := Read(filepath.Join(dir, "again.yaml"), []string{set})
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(s.Warnings(), "\n"); !strings.HasSuffix(got, want) || want == "" && got != "" {
			t.Errorf("%s: %q, want %q", set, got, want)
		}
	}
}
