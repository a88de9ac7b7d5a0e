package deploytest

import (
	"bufio"
	"io"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
)

// listening matches Prometheus' log line with its port.
var listening = regexp.MustCompile(`msg="Listening on".* address=(\S+)`)

// StartPrometheus starts a real Prometheus server with this configuration file,
// its data in a folder, on a free port of the loopback, and returns its URL once
// it is ready. The end of the test ends it, and expects it to end well.
func StartPrometheus(t testing.TB, config, data string, args ...string) (url string) {
	t.Helper()
	cmd := exec.Command(Tool(t, Prometheus), append(args, "--config.file="+config, "--storage.tsdb.path="+data, "--web.listen-address=127.0.0.1:0")...)
	logs, stderr := io.Pipe()
	cmd.Stderr = stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	said := &strings.Builder{}
	ready := make(chan string, 1)
	var end error
	var threads sync.WaitGroup
	threads.Go(func() {
		end = cmd.Wait()
		stderr.Close() // ends its reader
	})
	threads.Go(func() {
		defer close(ready)
		address, is, told := "", false, false
		for lines := bufio.NewScanner(logs); lines.Scan(); {
			said.WriteString(lines.Text() + "\n")
			if m := listening.FindStringSubmatch(lines.Text()); m != nil {
				address = m[1]
			}
			is = is || strings.Contains(lines.Text(), "Server is ready to receive web requests")
			if is && address != "" && !told { // they come in either order
				ready <- "http://" + address
				told = true
			}
		}
		_, _ = io.Copy(io.Discard, logs) // a line too long for the scanner
	})
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM) // it may have ended
		threads.Wait()
		if end != nil {
			t.Errorf("Prometheus did not end well: %v", end)
		}
		if t.Failed() {
			t.Logf("Prometheus had said:\n%s", said)
		}
	})
	url, ok := <-ready
	if !ok {
		t.Fatal("Prometheus ended before it was ready")
	}
	return url
}
