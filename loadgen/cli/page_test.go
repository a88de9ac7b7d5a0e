package cli

import (
	"bytes"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stormglass/stormglass/loadgen/internal/run"
)

// styles colour text.
var styles = regexp.MustCompile(`\x1b\[[0-9;]*m`)

// stormPage is the page of a run in its second phase.
func stormPage() (*pageModel, time.Time) {
	began := time.Date(2026, 11, 21, 3, 4, 5, 0, time.UTC)
	m := &pageModel{began: began, url: "http://127.0.0.1:41733/TOKEN/"}
	s := run.Snapshot{
		Scenario: "node-failure-storm", Phase: "storm", Until: "nodesNotReady", Length: 2 * time.Minute, Nodes: 500, PodsWanted: 2000, Gates: 7,
		Phases: []run.PhaseState{
			{Name: "fill", Until: "podsReady", Took: 96 * time.Second, Length: 5 * time.Minute},
			{Name: "steady", Took: 12 * time.Second, Length: 30 * time.Second, EndedEarly: true},
			{Name: "storm", Until: "nodesNotReady", Length: 2 * time.Minute, Now: true}, {Name: "recovery"}, {Name: "return"},
		},
		Faults: []string{"nodeFailure 150 of 500 nodes stop", "kill on kube-apiserver-0"},
		Stops:  []run.StopState{{Text: "errors=50%,for=10s"}, {Text: "alert=EtcdNoLeader", Blind: "the expression returns no value"}},
	}
	for i := range 50 {
		s.Elapsed = time.Duration(i) * time.Second
		s.Offered, s.Achieved, s.P99 = 200, 198, 12*time.Millisecond
		s.NodesReady, s.PodsReady = 500, 2000
		if i > 30 {
			s.Achieved, s.P99, s.NodesReady, s.PodsReady = 120.4, 1840*time.Millisecond, 350, 1400+int64(i)
		}
		m.take(s, began.Add(time.Duration(i)*time.Second))
	}
	m.steps = []string{"00:04  run directory runs/x", "00:20  500 nodes Ready", "02:10  phase storm: until nodesNotReady, within 2m0s\x1b[31m\nred"}
	return m, began.Add(161 * time.Second)
}

// The page at the minimum size, as text.
func TestPageAsText(t *testing.T) {
	const file = "testdata/page.txt"
	m, now := stormPage()
	var got bytes.Buffer
	show := func(what string, columns, rows int) {
		got.WriteString("-- " + what + " --\n")
		frame := m.frame(columns, rows, now)
		if len(frame) != rows {
			t.Errorf("%s: %d lines, want %d", what, len(frame), rows)
		}
		for _, l := range frame {
			if n := len([]rune(l)); n > columns {
				t.Errorf("%s: %d columns, want at most %d: %q", what, n, columns, l)
			}
			got.WriteString(strings.TrimRight(l, " ") + "\n")
		}
	}
	show("a storm", 80, 24)
	m.snapshot.Paused, m.said = 12*time.Second, "phase storm is already ending"
	show("paused", 100, 30)
	m.help = true
	show("help", 80, 24)
	m = &pageModel{began: m.began}
	m.take(run.Snapshot{Scenario: "flood", Gates: 1, Phases: []run.PhaseState{{Name: "only"}}}, now)
	show("getting ready", 80, 24)
	if *update {
		if err := os.WriteFile(file, got.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got.String() != string(want) {
		t.Errorf("the page differs from %s (-update rewrites it):\n%s", file, &got)
	}
}

// A frame fits any size of the terminal and any length of the run.
func TestPageFitsAnyTerminal(t *testing.T) {
	m, now := stormPage()
	for range 3 * maxPoints {
		m.last = time.Time{}
		m.take(m.snapshot, now)
	}
	if len(m.points) != maxPoints {
		t.Errorf("the page keeps %d points", len(m.points))
	}
	for _, colours := range []bool{false, true} {
		m.colours = colours
		for _, size := range [][2]int{{0, 0}, {1, 1}, {20, 8}, {79, 23}, {80, 24}, {81, 60}, {300, 100}} {
			columns, rows := max(size[0], 20), max(size[1], 8)
			frame := m.frame(size[0], size[1], now)
			if len(frame) != rows {
				t.Errorf("%v: %d lines", size, len(frame))
			}
			for _, l := range frame {
				if n := len([]rune(styles.ReplaceAllString(l, ""))); n > columns {
					t.Errorf("%v: a line of %d columns: %q", size, n, l)
				}
			}
		}
	}
}

// Text from a cluster cannot control the terminal.
func TestPageTextIsClean(t *testing.T) {
	if got := clean("a\x1b[2J\r\nb\u202ec\u200bd\u4e16e\u0301▶"); got != "a [2J  b?c?d?e?▶" {
		t.Errorf("%q", got)
	}
}

func TestKeysAreFoundInInput(t *testing.T) {
	for input, want := range map[string]string{
		"pnq":                            "pnq",
		"\x1b[A\x1b[1;5Cp\x1bOPn\x1b[3~": "pn",
		"\x1b[200~quit now\x1b[201~p":    "p",
		"\x1b\x1b[Aq":                    "q",
		"\x1bq?":                         "?",
	} {
		var whole, single keyParser
		if got := string(whole.feed([]byte(input))); got != want {
			t.Errorf("%q: %q, want %q", input, got, want)
		}
		var keys []byte
		for i := range len(input) {
			keys = append(keys, single.feed([]byte{input[i]})...)
		}
		if string(keys) != want {
			t.Errorf("%q, a byte at a time: %q, want %q", input, keys, want)
		}
	}
}

func BenchmarkPageFrame(b *testing.B) {
	m, now := stormPage()
	for b.Loop() {
		m.frame(200, 60, now)
	}
}
