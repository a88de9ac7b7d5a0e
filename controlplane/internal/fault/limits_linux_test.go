package fault

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func TestDescriptorLimitIsSetAndRestored(t *testing.T) {
	var before, during, after unix.Rlimit
	read := func(into *unix.Rlimit) {
		t.Helper()
		if err := unix.Getrlimit(unix.RLIMIT_NOFILE, into); err != nil {
			t.Fatal(err)
		}
	}
	read(&before)
	was, err := SetLimit(os.Getpid(), OpenFiles, before.Cur-1)
	if err != nil || was != before.Cur {
		t.Fatalf("previous limit = %d, want %d: %v", was, before.Cur, err)
	}
	read(&during)
	if _, err := SetLimit(os.Getpid(), OpenFiles, was); err != nil {
		t.Fatal(err)
	}
	read(&after)
	if during.Cur != before.Cur-1 || during.Max != before.Max || after != before {
		t.Errorf("limits before %+v, during %+v, after %+v", before, during, after)
	}

	// SetLimit does not set a limit that an unprivileged process could not restore.
	if before.Max < unix.RLIM_INFINITY {
		_, err := SetLimit(os.Getpid(), OpenFiles, before.Max+1)
		if err == nil || !strings.Contains(err.Error(), "greater than the hard limit") {
			t.Errorf("SetLimit above the hard limit = %v, want an error about the hard limit", err)
		}
	}
}

// A process whose file size is limited to 0 keeps running, and can write again afterwards.
func TestFullDiskIsFilledAndFreed(t *testing.T) {
	file, err := os.Create(filepath.Join(t.TempDir(), "log"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	sleeper := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestWriterOfAFullDisk$")
	sleeper.Env = append(os.Environ(), "STORMGLASS_WRITER="+file.Name())
	in, err := sleeper.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := sleeper.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := sleeper.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = in.Close(); _ = sleeper.Wait() }()
	said := bufio.NewScanner(out)
	write := func() string {
		t.Helper()
		if _, err := io.WriteString(in, "line\n"); err != nil {
			t.Fatal(err)
		}
		if !said.Scan() {
			t.Fatal("the writer has ended")
		}
		return said.Text()
	}
	if got := write(); got != "ok" {
		t.Errorf("write before the fault: %s", got)
	}
	was, err := SetLimit(sleeper.Process.Pid, FileSize, 0)
	if err != nil {
		t.Fatal(err)
	}
	if got := write(); !strings.Contains(got, "file too large") {
		t.Errorf("write during the fault: %s", got)
	}
	if _, err := SetLimit(sleeper.Process.Pid, FileSize, was); err != nil {
		t.Fatal(err)
	}
	if got := write(); got != "ok" {
		t.Errorf("write after the fault: %s", got)
	}
}

// TestWriterOfAFullDisk is the main function of a process that writes a line for each line that it reads, and prints
// the result.
func TestWriterOfAFullDisk(t *testing.T) {
	name := os.Getenv("STORMGLASS_WRITER")
	if name == "" {
		return // runs only in a process that the test above starts
	}
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		file, err := os.OpenFile(name, os.O_APPEND|os.O_WRONLY, 0)
		if err == nil {
			_, err = file.Write(lines.Bytes())
			file.Close()
		}
		if err != nil {
			fmt.Println(err)
			continue
		}
		fmt.Println("ok")
	}
}
