package commandline

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stormglass/stormglass/internal/exitcode"
)

// A crash prints one line, writes a file with the stack, and has its own exit code.
func TestCrashIsNoBadUsage(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	var stderr strings.Builder
	code := func() (code int) {
		defer OnCrash("loadgen", &stderr, &code)
		panic("no such\nthing")
	}()
	m := regexp.MustCompile(`^loadgen: crashed: no such thing; its stack is in (\S+) \(this is a bug: please report it\)\n$`).FindStringSubmatch(stderr.String())
	if code != exitcode.Crash || m == nil {
		t.Fatalf("exit code %d, %q", code, stderr.String())
	}
	text, err := os.ReadFile(m[1])
	if err != nil || !strings.Contains(string(text), "TestCrashIsNoBadUsage") {
		t.Errorf("%v: %s", err, text)
	}
	if code := func() (code int) { defer OnCrash("loadgen", &stderr, &code); return 3 }(); code != 3 {
		t.Errorf("without a crash: %d", code)
	}
}
