package commandline

import (
	"os"
	"os/exec"
	"regexp"
	"strings"
	"syscall"
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
	m := regexp.MustCompile(`^loadgen: crashed: no such thing; the stack trace is in (\S+) \(this is a bug: please report it\)\n$`).FindStringSubmatch(stderr.String())
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

// A panic of another goroutine ends the program by SIGABRT. Without AbortOnCrash, the exit code is 2, which means bad usage.
func TestCrashOfAnotherGoroutineIsNoBadUsage(t *testing.T) {
	if os.Getenv("STORMGLASS_TEST_CRASH") != "" {
		_ = syscall.Setrlimit(syscall.RLIMIT_CORE, &syscall.Rlimit{}) // otherwise the crash also writes a core file
		AbortOnCrash()
		go func() { panic("no such thing") }()
		select {}
	}
	cmd := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$")
	cmd.Env = append(os.Environ(), "STORMGLASS_TEST_CRASH=1")
	said, err := cmd.CombinedOutput()
	if err == nil || cmd.ProcessState.Sys().(syscall.WaitStatus).Signal() != syscall.SIGABRT {
		t.Errorf("%v\n%s", err, said)
	}
}
