package scenario

import (
	"fmt"
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
	_, table, found := strings.Cut(string(page), "\n## Memory\n")
	if !found {
		t.Fatal("docs/sizing.md has no section Memory")
	}
	var documented []string
	for line := range strings.Lines(table) {
		if !strings.HasPrefix(line, "| `") {
			continue
		}
		cells := strings.Split(strings.Trim(line, "|\n "), "|")
		name := strings.Trim(cells[0], " `")
		documented = append(documented, name)
		m, recorded := RecordedMemory(name)
		want := fmt.Sprintf("%s, %s", decimal(m.Plane), decimal(m.Loadgen))
		if got := strings.TrimSpace(cells[1]) + ", " + strings.TrimSpace(cells[2]); !recorded || got != want {
			t.Errorf("%s: docs/sizing.md has %s, the catalogue %s", name, got, want)
		}
	}
	for _, name := range Names() {
		if _, recorded := RecordedMemory(name); recorded != slices.Contains(documented, name) {
			t.Errorf("%s is recorded in one of docs/sizing.md and the catalogue only", name)
		}
	}
	for _, name := range documented {
		if !slices.Contains(Names(), name) {
			t.Errorf("docs/sizing.md has %s, which is no built-in scenario", name)
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
