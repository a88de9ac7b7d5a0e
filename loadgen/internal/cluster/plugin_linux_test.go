package cluster

import (
	"bufio"
	"errors"
	"io"
	"os/exec"
	"path/filepath"
	"testing"
)

// endPlugin ends a plugin that hangs, and the processes that the plugin started, even if the plugin is a script. It
// does not end a process with another command line.
func TestHangingPluginIsEnded(t *testing.T) {
	const hangs = "sleep 1000 & echo up; wait"
	script := file(t, "plugin.sh", "#!/bin/sh\n"+hangs+"\n")
	other := exec.Command("sh", "-c", hangs, "other")
	start := func(cmd *exec.Cmd) (output *bufio.Reader) {
		t.Helper()
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		output = bufio.NewReader(out)
		if line, err := output.ReadString('\n'); err != nil || line != "up\n" {
			t.Fatalf("%q, %v", line, err)
		}
		return output
	}
	left := start(other)
	for _, argv := range [][]string{{"sh", "-c", hangs}, {script, "get-token"}} {
		cmd := exec.Command(argv[0], argv[1:]...)
		if argv[0] == script {
			cmd = exec.Command("sh", argv...) // as the kernel runs a script, but also on a file system that forbids execution
		}
		output := start(cmd)
		if err := endPlugin(argv); err != nil {
			t.Error(err)
		}
		if rest, err := io.ReadAll(output); err != nil || len(rest) > 0 { // until no process has the output open
			t.Errorf("%q, %v", rest, err)
		}
		if err := cmd.Wait(); !errors.As(err, new(*exec.ExitError)) {
			t.Errorf("%s: Wait returned %v, want an exit error", filepath.Base(argv[0]), err)
		}
	}
	if err := endPlugin([]string{"sh", "-c", hangs, "other"}); err != nil {
		t.Error(err)
	}
	if _, err := io.ReadAll(left); err != nil || other.Wait() == nil {
		t.Errorf("the process with another command line had already ended: %v", err)
	}
}
