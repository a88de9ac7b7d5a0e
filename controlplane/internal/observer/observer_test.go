package observer

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// loadgen returns options whose Binary is a script instead of loadgen. The script first writes its arguments and its
// process ID to the log.
func loadgen(t *testing.T, script string) Options {
	t.Helper()
	dir := t.TempDir()
	o := Options{Binary: filepath.Join(dir, "loadgen"), Dir: "the-plane", Addr: "127.0.0.1:0", Log: filepath.Join(dir, "observer.log")}
	text := "#!/bin/sh\necho \"$$ $*\" >&2\n" + script + "\n"
	if err := os.WriteFile(o.Binary, []byte(text), 0o700); err != nil {
		t.Fatal(err)
	}
	return o
}

const serves = `echo '{"url": "http://127.0.0.1:1234", "prometheusConfig": "x"}'`

func said(t *testing.T, o Options) string {
	t.Helper()
	text, err := os.ReadFile(o.Log)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestStart checks that Start returns the URL that the program prints, and that Stop ends the program.
func TestStart(t *testing.T) {
	o := loadgen(t, serves+"\nexec cat <&3")
	o.Public = true
	w, err := Start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if w.URL() != "http://127.0.0.1:1234" {
		t.Errorf("URL = %s, want http://127.0.0.1:1234", w.URL())
	}
	if got := said(t, o); !strings.Contains(got, " observe --dir the-plane --listen 127.0.0.1:0 --output json --observe-public\n") {
		t.Errorf("arguments = %s, want the command loadgen observe", got)
	}
	w.Stop()
	select {
	case <-w.Done():
	default:
		t.Error("the program still runs after Stop")
	}
	w.Stop() // a second Stop has no effect
}

// TestNotStarted checks that Start returns the observer's own error, and leaves no process.
func TestNotStarted(t *testing.T) {
	interrupted, interrupt := context.WithCancelCause(t.Context())
	interrupt(errors.New("signal interrupt"))
	for name, c := range map[string]struct {
		ctx    context.Context
		script string
		want   string
	}{
		"it ends at once":    {t.Context(), "echo 'loadgen: --listen: the port is taken' >&2; exit 4", "observe: --listen: the port is taken"},
		"it says nonsense":   {t.Context(), "echo hello; exec cat <&3", "observe: invalid character 'h' looking for beginning of value"},
		"it is an interrupt": {interrupted, "exec cat <&3", "observe: signal interrupt"},
	} {
		t.Run(name, func(t *testing.T) {
			o := loadgen(t, c.script)
			if _, err := Start(c.ctx, o); err == nil || err.Error() != c.want {
				t.Errorf("Start = %v\nwant %s", err, c.want)
			}
		})
	}
	o := loadgen(t, "")
	o.Binary = filepath.Join(t.TempDir(), "none")
	if _, err := Start(t.Context(), o); err == nil || !strings.Contains(err.Error(), "no such file") {
		t.Errorf("Start of a missing program = %v, want no such file", err)
	}
}

// TestDiesWithParent kills the supervisor. The observer reads an end of file from the pipe and must end.
func TestDiesWithParent(t *testing.T) {
	if os.Getenv("OBSERVER_TEST_LOG") != "" {
		o := Options{Binary: os.Getenv("OBSERVER_TEST_BINARY"), Log: os.Getenv("OBSERVER_TEST_LOG")}
		if _, err := Start(t.Context(), o); err != nil {
			t.Fatal(err)
		}
		fmt.Println("started")
		select {} // until the test kills this process
	}
	o := loadgen(t, serves+"\nexec cat <&3")
	parent := exec.Command(os.Args[0], "-test.run", "^TestDiesWithParent$")
	parent.Env = append(os.Environ(), "OBSERVER_TEST_BINARY="+o.Binary, "OBSERVER_TEST_LOG="+o.Log)
	out, err := parent.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || line != "started\n" {
		t.Fatal(line, err)
	}
	var pid int
	if _, err := fmt.Sscan(said(t, o), &pid); err != nil {
		t.Fatal(err)
	}
	if err := parent.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_, _ = io.Copy(io.Discard, out)
	_ = parent.Wait()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for syscall.Kill(pid, 0) == nil && !zombie(pid) {
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("process %d still runs", pid)
		}
	}
}

// zombie reports whether a process has ended and its parent has not waited for it. If the tests run as the first
// process of a container, orphans remain zombies.
func zombie(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return true
	}
	_, after, _ := strings.Cut(string(stat), ") ")
	return strings.HasPrefix(after, "Z")
}

// TestFind checks that Find finds loadgen next to the program or on PATH, and that its error says how to build loadgen.
func TestFind(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("PATH", "")
	if _, err := Find(filepath.Join(dir, "controlplane")); err == nil || !strings.Contains(err.Error(), "make build") {
		t.Errorf("Find without loadgen = %v, want the command that builds it", err)
	}
	o := loadgen(t, "")
	t.Setenv("PATH", filepath.Dir(o.Binary))
	if path, err := Find(filepath.Join(dir, "controlplane")); err != nil || path != o.Binary {
		t.Errorf("Find on PATH = %s, %v; want %s", path, err, o.Binary)
	}
	beside := filepath.Join(dir, "loadgen")
	if err := os.WriteFile(beside, nil, 0o700); err != nil {
		t.Fatal(err)
	}
	if path, err := Find(filepath.Join(dir, "controlplane")); err != nil || path != beside {
		t.Errorf("Find next to the program = %s, %v; want %s", path, err, beside)
	}
}
