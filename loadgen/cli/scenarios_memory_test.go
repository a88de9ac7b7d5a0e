package cli

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stormglass/stormglass/loadgen/scenario"
)

// docs/sizing.md has the same memory as measured.txt.
func TestRecordedMemoryIsThatOfTheDocs(t *testing.T) {
	page, err := os.ReadFile("../../docs/sizing.md")
	if err != nil {
		t.Fatal(err)
	}
	_, block, found := strings.Cut(string(page), "\n```\nscenario ")
	table, _, closed := strings.Cut(block, "\n```\n")
	if !found || !closed {
		t.Fatal("docs/sizing.md has no table of scenarios")
	}
	for _, line := range strings.Split(table, "\n")[1:] {
		fields := strings.Fields(line) // a name, two times, and two sizes of two words each
		m := recordedMemory(fields[0])
		if m == nil {
			m = &listedMemory{}
		}
		want := decimal(m.PlaneBytes) + " " + decimal(m.LoadgenBytes)
		if got := strings.Join(fields[len(fields)-4:], " "); got != want {
			t.Errorf("%s: docs/sizing.md has %s, measured.txt %s", fields[0], got, want)
		}
	}
}

func TestRecordedMemoryIsThatOfScenarios(t *testing.T) {
	for line := range strings.Lines(measured) {
		name, _, _ := strings.Cut(line, " ")
		if name != "#" && !slices.Contains(scenario.Names(), name) {
			t.Errorf("measured.txt has %s, but no built-in scenario has this name", name)
		}
	}
}

func TestMemoryOfAScenarioThatWasNotRecorded(t *testing.T) {
	if m := recordedMemory("no-such"); m != nil {
		t.Errorf("%+v", m)
	}
	if m := recordedMemory("watch-flood"); m == nil || *m != (listedMemory{989e6, 128e6}) { // not confused with watch-flood-20000
		t.Errorf("%+v", m)
	}
}
