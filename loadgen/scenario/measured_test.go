package scenario

import (
	"os"
	"slices"
	"strings"
	"testing"
)

// The catalogue lists the same memory as docs/sizing.md, and only for existing scenarios.
func TestRecordedMemoryIsThatOfTheDocs(t *testing.T) {
	page, err := os.ReadFile("../../docs/sizing.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, found := strings.Cut(string(page), "\n## Memory\n")
	if !found {
		t.Fatal("docs/sizing.md has no section Memory")
	}
	_, block, found := strings.Cut(section, "\n```\n")
	table, _, closed := strings.Cut(block, "\n```\n")
	if !found || !closed {
		t.Fatal("docs/sizing.md has no table in the section Memory")
	}
	var documented []string
	for _, line := range strings.Split(table, "\n")[1:] {
		name, sizes, _ := strings.Cut(line, " ")
		documented = append(documented, name)
		m, recorded := RecordedMemory(name)
		want := decimal(m.Plane) + " " + decimal(m.Loadgen)
		if got := strings.Join(strings.Fields(sizes), " "); !recorded || got != want {
			t.Errorf("%s: docs/sizing.md has %s, the catalogue %s", name, got, want)
		}
	}
	for _, name := range Names() {
		if _, recorded := RecordedMemory(name); recorded != slices.Contains(documented, name) {
			t.Errorf("only one of docs/sizing.md and the catalogue has %s", name)
		}
	}
	for _, name := range documented {
		if !slices.Contains(Names(), name) {
			t.Errorf("docs/sizing.md has %s, but no built-in scenario has this name", name)
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
