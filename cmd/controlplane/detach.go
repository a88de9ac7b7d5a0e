package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"

	"github.com/stormglass/stormglass/controlplane/control"
)

// detach starts the supervisor in a session of its own and waits until the
// plane is ready or has failed, showing its progress.
func detach(ctx context.Context, o upOptions, stdout, stderr io.Writer) error {
	executable, err := os.Executable()
	if err != nil {
		return environment(err)
	}
	dir, err := filepath.Abs(o.dir)
	if err != nil {
		return environment(err)
	}
	args := []string{"up", "--background", "--dir", dir, "--output", "json"}
	if o.config != "" {
		args = append(args, "--config", o.config)
	}
	ctx, _, release := interrupts(ctx)
	defer release()
	cmd := exec.Command(executable, args...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	cmd.Stdin = os.Stdin // for --config -
	result, err := cmd.StdoutPipe()
	if err != nil {
		return environment(err)
	}
	messages, err := cmd.StderrPipe()
	if err != nil {
		return environment(err)
	}
	if err := cmd.Start(); err != nil {
		return environment(err)
	}
	stop := context.AfterFunc(ctx, func() { _ = cmd.Process.Signal(syscall.SIGTERM) })
	defer stop()
	shown := make(chan struct{})
	go func() {
		defer close(shown)
		lines := bufio.NewScanner(messages)
		lines.Buffer(nil, 1<<20)
		for lines.Scan() {
			fmt.Fprintln(stderr, lines.Text())
		}
	}()
	var cluster control.Cluster
	if json.NewDecoder(result).Decode(&cluster) == nil {
		if o.output == "json" {
			return environment(json.NewEncoder(stdout).Encode(cluster))
		}
		return environment(writeUsage(stdout, cluster, false))
	}
	<-shown // the supervisor has told already what went wrong
	err = cmd.Wait()
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() == exitUsage {
		return errAlreadyTold
	}
	return environment(errAlreadyTold)
}

// errAlreadyTold only carries an exit code.
var errAlreadyTold = errors.New("the control plane did not start")
