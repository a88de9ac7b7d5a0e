package terminal

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// logVariable names the log of a process that leaves its terminal; it makes the test binary such a process.
const logVariable = "STORMGLASS_TEST_LEAVE"

const lines = 100_000 // more than a pipe holds

func TestMain(m *testing.M) {
	file := os.Getenv(logVariable)
	if file == "" {
		os.Exit(m.Run())
	}
	SurvivePipes()
	fmt.Println("ready")
	_, _ = os.Stdin.Read(make([]byte, 1)) // until its output has no reader
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
	for { // the log is written by another goroutine
		if text, err := os.ReadFile(file); err == nil && bytes.Contains(text, fmt.Appendf(nil, "line %d\n", lines-1)) {
			os.Exit(7)
		}
	}
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
		t.Errorf("it ended: %v", err)
	}
	if info, err := os.Stat(file); err != nil || info.Size() == 0 {
		t.Errorf("its log: %v", err)
	}
}
