package docscheck

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// checkedAfter is the commit after which the hook checks subjects.
const checkedAfter = "083176a6"

// TestCommitSubjects runs the hook commit-msg on the subjects of recent commits. A tree without this part of the
// history, such as an archive or a shallow clone, has nothing to check.
func TestCommitSubjects(t *testing.T) {
	out, err := exec.Command("git", "-C", "../..", "log", "--no-merges", "--format=%s", checkedAfter+"..").Output()
	if err != nil {
		t.Logf("no history: %v", err)
	}
	for subject := range strings.Lines(string(out)) {
		if said, err := hook(t, subject); err != nil {
			t.Errorf("%s%s", subject, said)
		}
	}
}

func TestHookRefusesOtherSubjects(t *testing.T) {
	for subject, want := range map[string]bool{
		"scenario: refuse empty names":          true,
		"alerts, docs: rename the first rule":   true,
		"Refuse empty names":                    false,
		"scenario:refuse":                       false,
		"scenario: " + strings.Repeat("x", 61):  true,
		"scenario: " + strings.Repeat("x", 62):  false,
		"Merge branch 'x' into a longer branch": true,
	} {
		if said, err := hook(t, subject); (err == nil) != want {
			t.Errorf("%q: %v\n%s", subject, err, said)
		}
	}
}

func hook(t *testing.T, subject string) (said []byte, err error) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "message")
	if err := os.WriteFile(file, []byte(subject), 0o600); err != nil {
		t.Fatal(err)
	}
	return exec.Command("../../tools/githooks/commit-msg", file).CombinedOutput()
}
