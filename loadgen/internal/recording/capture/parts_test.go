package capture

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stormglass/stormglass/loadgen/internal/auditlog/auditlogtest"
	"github.com/stormglass/stormglass/loadgen/internal/recording"
)

func TestCoverageTellsGapsAndMissingServers(t *testing.T) {
	at := func(minutes float64) int64 { return clockTime(60 * minutes).UnixMicro() }
	of := func(minutes ...float64) (all []span) {
		for i := 0; i < len(minutes); i += 2 {
			all = append(all, span{at(minutes[i]), at(minutes[i+1])})
		}
		return all
	}
	for name, c := range map[string]struct {
		spans []span
		want  []string
	}{
		"one log":                 {of(0, 10), nil},
		"rotated":                 {of(0, 10, 10, 20, 20.01, 30), nil},
		"rotated with an overlap": {of(0, 10, 9.99, 20), nil},
		"two servers":             {of(0, 10, 0.1, 10.1), nil},
		"two servers, rotated":    {of(0, 10, 10, 20, 0, 7, 7, 20), nil},
		"a log is missing":        {of(0, 10, 15, 20), []string{"no log covers the time from 2026-11-24T10:10:00Z to 2026-11-24T10:15:00Z, so requests of these 5m0s are missing"}},
		"a server begins late": {of(0, 20, 5, 20), []string{
			"the logs come from 2 API servers, but for 25% of the time at least one server has no log, so its requests are missing (record --from 2026-11-24T10:05:00Z --to 2026-11-24T10:20:00Z, or add the other logs)"}},
	} {
		if got := coverage(c.spans, false); !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

func TestStringsHaveOneNumberEach(t *testing.T) {
	table := newStringTable()
	const seed = 5
	r := rand.New(rand.NewPCG(seed, 0))
	numbers := map[string]uint32{"": 0}
	for range 50000 {
		text := fmt.Sprint(r.IntN(20000))
		number := table.number([]byte(text))
		if was, ok := numbers[text]; ok && was != number || number == 0 {
			t.Fatalf("seed %d: %q is %d, was %d", seed, text, number, was)
		}
		numbers[text] = number
	}
	for text, number := range numbers {
		if got := table.string(number); got != text {
			t.Fatalf("seed %d: %d is %q, want %q", seed, number, got, text)
		}
	}
}

func TestSelectorsOfAllFormsAreHashed(t *testing.T) {
	n := newNames()
	h := n.hash
	for text, want := range map[string]string{
		"":                    "",
		"app=web":             "app=" + h("web"),
		"app==web,tier!=db":   "app==" + h("web") + ",tier!=" + h("db"),
		"app,!old":            "app,!old",
		"size>3":              "size>3",
		"app=":                "app=",
		"not a selector":      h("not a selector"),
		"app notin (default)": "app notin (default)",
	} {
		if got := n.labelSelector(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
	both := n.labelSelector("app in (a,b)")
	values := []string{h("a"), h("b")}
	slices.Sort(values)
	if want := "app in (" + strings.Join(values, ",") + ")"; both != want {
		t.Errorf("a set: %q, want %q", both, want)
	}
	if name := h("web"); len(name) != 14 || strings.ToLower(name) != name || strings.ContainsAny(name, "=/+01") {
		t.Errorf("%q is not a valid name in Kubernetes", name)
	}
}

// Names in logs may have escape sequences, which a terminal would obey.
func TestRecordingIsPrintedClean(t *testing.T) {
	r := &Result{Header: recording.Header{Actors: []recording.Actor{{Name: "\x1b[2Jjane"}}, Notes: []string{"\x1b]0;x\aaudit\u202e.log: cut"}}}
	r.Summary.Groups = []recording.Group{{Verb: "get", Resource: "pods", Requests: 1}}
	var text strings.Builder
	if err := WriteText(&text, r); err != nil {
		t.Fatal(err)
	}
	if got := text.String(); strings.ContainsAny(got, "\x1b\a\u202e") || !strings.Contains(got, "\nnote: ]0;xaudit.log: cut\n") || !strings.Contains(got, "[2Jjane") {
		t.Errorf("%q", got)
	}
}

// BenchmarkReadLog measures the time and memory for recording a log of 100,000 events.
func BenchmarkReadLog(b *testing.B) {
	const lines = 100000
	dir := b.TempDir()
	path := filepath.Join(dir, "audit.log")
	f, err := os.Create(path)
	if err != nil {
		b.Fatal(err)
	}
	if _, err := auditlogtest.Write(f, auditlogtest.Options{Lines: lines, Seed: 1}); err != nil {
		b.Fatal(err)
	}
	info, err := f.Stat()
	if err != nil {
		b.Fatal(err)
	}
	if err := f.Close(); err != nil {
		b.Fatal(err)
	}
	b.SetBytes(info.Size())
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Audit(b.Context(), AuditOptions{Logs: []string{path}, Out: filepath.Join(dir, "storm.recording")}); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(lines*float64(b.N)/b.Elapsed().Seconds(), "lines/s")
}
