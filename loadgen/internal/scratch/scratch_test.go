package scratch

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
)

// scratchEnv makes the test binary make a scratch directory and wait to be killed.
const scratchEnv = "TARGET_TEST_SCRATCH"

// The next sweep removes the directories of killed processes from the temporary directory;
// it keeps the directories of live processes and of other programs.
func TestSweepRemovesFilesOfDeadProcesses(t *testing.T) {
	if os.Getenv(scratchEnv) != "" {
		s, err := New(Rules)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Println(s.Path)
		select {}
	}
	temp := t.TempDir()
	t.Setenv("TMPDIR", temp)
	child := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$")
	child.Env = append(os.Environ(), scratchEnv+"=1")
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	theirs := line[:len(line)-1]
	ours, err := New(Nodes)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"stormglass-123", "other"} {
		if err := os.Mkdir(filepath.Join(temp, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(ours.Path, filepath.Join(temp, Token+"link")); err != nil {
		t.Fatal(err)
	}
	if removed := Sweep(); len(removed) > 0 {
		t.Errorf("removed what live processes have: %v", removed)
	}
	if err := child.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = child.Wait()
	if err := os.WriteFile(filepath.Join(theirs, "token"), []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	if removed := Sweep(); !slices.Equal(removed, []string{theirs}) {
		t.Errorf("removed %v, want %s", removed, theirs)
	}
	if _, err := os.Stat(theirs); !os.IsNotExist(err) {
		t.Errorf("still there: %v", err)
	}
	for range 2 {
		if err := ours.Remove(); err != nil {
			t.Error(err)
		}
	}
	left, err := os.ReadDir(temp)
	if err != nil || len(left) != 3 { // the two of others and the link
		t.Errorf("left %v, %v", left, err)
	}
}
