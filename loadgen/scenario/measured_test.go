package scenario

import (
	"os"
	"slices"
	"strings"
	"testing"
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
		m, recorded := RecordedMemory(fields[0])
		want := decimal(m.Plane) + " " + decimal(m.Loadgen)
		if got := strings.Join(fields[len(fields)-4:], " "); !recorded || got != want {
			t.Errorf("%s: docs/sizing.md has %s, measured.txt %s", fields[0], got, want)
		}
	}
}

func TestRecordedMemoryIsThatOfScenarios(t *testing.T) {
	for line := range strings.Lines(measured) {
		name, _, _ := strings.Cut(line, " ")
		if name != "#" && !slices.Contains(Names(), name) {
			t.Errorf("measured.txt has %s, but no built-in scenario has this name", name)
		}
	}
}

func TestMemoryOfAScenarioThatWasNotRecorded(t *testing.T) {
	if m, ok := RecordedMemory("no-such"); ok || m != (Memory{}) {
		t.Errorf("%+v", m)
	}
	if m, ok := RecordedMemory("watch-flood"); !ok || m.Plane != 989e6 || m.Loadgen != 128e6 { // not confused with watch-flood-20000
		t.Errorf("%+v, %v", m, ok)
	}
}
