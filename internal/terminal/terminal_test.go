package terminal

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// logVariable holds the path of a log. If it is set, the test binary acts as a process that leaves its terminal.
const logVariable = "STORMGLASS_TEST_LEAVE"

const lines = 100_000 // more than a pipe without a reader holds

func TestMain(m *testing.M) {
	file := os.Getenv(logVariable)
	if file == "" {
		os.Exit(m.Run())
	}
	SurvivePipes()
	fmt.Println("ready")
	_, _ = os.Stdin.Read(make([]byte, 1)) // wait until the output has no reader
	for range 10 {
		fmt.Fprintln(os.Stderr, "nothing reads this")
	}
	if err := Leave(file); err != nil {
		os.Exit(1)
	}
	for i := range lines {
		fmt.Fprintln(os.Stderr, "line", i)
		fmt.Println("line", i)
	}
	if text, err := os.ReadFile(file); err != nil || bytes.Count(text, []byte("line ")) != 2*lines {
		os.Exit(1)
	}
	os.Exit(7)
}

// A process continues when the reader of its output is gone, and writes its output to a file.
func TestProcessOutlivesItsTerminal(t *testing.T) {
	file := filepath.Join(t.TempDir(), "output.log")
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), logVariable+"="+file)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stdout, cmd.Stderr = w, w
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	w.Close()
	r.Close()
	in.Close()
	if err := cmd.Wait(); cmd.ProcessState.ExitCode() != 7 {
		t.Errorf("the process ended with %v, want exit code 7", err)
	}
}

func TestProblemsAreCleanLines(t *testing.T) {
	for text, want := range map[string][]string{
		"a: no such file":                        {"a: no such file"},
		"a\x1b[2J\u202eb\xff: \x07gone\r\n":      {"a[2Jb: gone"},
		"one\n  its\tlog\ntwo":                   {"one", "  its log", "two"},
		strings.Repeat("é", 5000) + " (do this)": {strings.Repeat("é", 3000) + " ... " + strings.Repeat("é", 990) + " (do this)"},
		strings.Repeat("x\n", 203):               append(slices.Repeat([]string{"x"}, 200), "3 more lines"),
	} {
		if got := Problems(errors.New(text)); !slices.Equal(got, want) {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

// A word that is longer than a line is broken, so that no part of it is lost.
func TestWrap(t *testing.T) {
	for text, want := range map[string][]string{
		"":                   nil,
		"a bb  cc":           {"a bb", "cc"},
		"a 0123456789 b c d": {"a", "01234", "56789", "b c d"},
		"éé 01234567 b":      {"éé", "01234", "567 b"},
	} {
		if got := Wrap(text, 5); !slices.Equal(got, want) {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}
