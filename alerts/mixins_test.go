package alerts

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"
)

// TestMixinsPage checks the parts of docs/reference/mixins.md that the rules determine: the names and times of
// Stormglass's alerts, and the totals. People write the page by hand.
func TestMixinsPage(t *testing.T) {
	text, err := os.ReadFile("../docs/reference/mixins.md")
	if err != nil {
		t.Fatal(err)
	}
	all, err := Rules()
	if err != nil {
		t.Fatal(err)
	}
	floors := map[string]time.Duration{}
	for _, a := range all {
		floors[a.Alert] = a.FiresWithin(docScrape, docEvaluation)
	}
	named := regexp.MustCompile(`([A-Z][A-Za-z]+), (\d+) s`)
	judged := map[string]int{}
	lines := 0
	for line := range strings.Lines(string(text)) {
		cells := strings.Split(line, "|")
		if len(cells) < 5 {
			continue
		}
		ours := named.FindAllStringSubmatch(cells[2], -1)
		if len(ours) == 0 {
			continue // the head of the table
		}
		lines++
		upstream := strings.Trim(strings.TrimSpace(cells[3]), "*")
		for _, word := range []string{"seen", "later", "missed"} {
			if strings.HasPrefix(upstream, word) {
				judged[word]++
			}
		}
		for _, m := range ours {
			floor, known := floors[m[1]]
			if want := fmt.Sprintf("%.0f", floor.Seconds()); !known || m[2] != want {
				t.Errorf("%s, %s s: the rules say %s s (known: %v)", m[1], m[2], want, known)
			}
		}
	}
	sum := fmt.Sprintf("Upstream's alerts see %d of these %d faults, see %d later, and miss %d.", judged["seen"], lines, judged["later"], judged["missed"])
	if !strings.Contains(string(text), sum) || judged["seen"]+judged["later"]+judged["missed"] != lines {
		t.Errorf("mixins.md does not contain %q", sum)
	}
}
