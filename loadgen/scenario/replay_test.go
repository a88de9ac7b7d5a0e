package scenario

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const replayed = `
apiVersion: stormglass/v1alpha1
kind: Scenario
name: again
phases:
  - name: a
    for: 1s
    load: [{name: r, kind: requests, verb: get, shape: {kind: replay, file: arrivals.txt, speed: 2}}]
`

func TestReplayIsReadBesideTheScenario(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	file := filepath.Join(dir, "again.yaml")
	write("again.yaml", replayed)
	if _, err := Read(file, nil); err == nil || !strings.Contains(err.Error(), "again.yaml:8: phases.a.load.r.shape.file: cannot read") {
		t.Errorf("without the file: %v", err)
	}
	for text, want := range map[string]string{
		"0.5\n0.4\n":    "arrivals.txt:2: 0.4 is earlier than the previous time, 0.5 (sort the times in ascending order, for example with sort -n)",
		"# none\n\n":    "arrivals.txt: the file contains no arrivals (write one time per line, such as 0.125)",
		"1\n2 # x\n3s ": `arrivals.txt:3: "3s" is not a time (seconds since the start, such as 0.125)`,
		"-1":            `arrivals.txt:1: "-1" is not a time (seconds since the start, such as 0.125)`,
	} {
		write("arrivals.txt", text)
		if _, err := Read(file, nil); err == nil || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("%q: %v, want ...%s", text, err, want)
		}
	}
	write("arrivals.txt", "\ufeff# recorded\n0\n0.125\n\n7e1\n")
	s, err := Read(file, nil)
	if err != nil {
		t.Fatal(err)
	}
	if got := s.Loads()[0].Shape.Times; !slices.Equal(got, []float64{0, 0.125, 70}) {
		t.Errorf("times %v", got)
	}
	// The scenario reads the same in another directory.
	dir = t.TempDir()
	for name, data := range s.Bundle() {
		write(name, string(data))
	}
	text, err := s.Resolved()
	if err != nil {
		t.Fatal(err)
	}
	write("scenario.yaml", string(text))
	again, err := Read(filepath.Join(dir, "scenario.yaml"), nil)
	if err != nil {
		t.Fatal(err)
	}
	if got := again.Loads()[0].Shape.Times; !slices.Equal(got, []float64{0, 0.125, 70}) {
		t.Errorf("times %v after a copy to another directory", got)
	}
}
