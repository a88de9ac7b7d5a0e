package main

import (
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
	"github.com/stormglass/stormglass/internal/exitcode"
)

// detach starts the supervisor in a session of its own and waits until the
// plane is ready or has failed, showing its progress.
func detach(ctx context.Context, o upOptions, stdout, stderr io.Writer) error {
	executable, err := os.Executable()
	if err != nil {
		return exitcode.EnvironmentError(err)
	}
	dir, err := filepath.Abs(o.dir)
	if err != nil {
		return exitcode.EnvironmentError(err)
	}
	args := []string{"up", "--background", "--dir", dir, "--output", "json"}
	if o.config != "" {
		args = append(args, "--config", o.config)
	}
	args = append(args, o.observer.args()...)
	ctx, now, release := interrupts(ctx)
	defer release()
	cmd := exec.Command(executable, args...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	cmd.Stdin = os.Stdin // for --config -
	said, err := cmd.StdoutPipe()
	if err != nil {
		return exitcode.EnvironmentError(err)
	}
	cmd.Stderr = cmd.Stdout // one stream: what was said before the result is read before it
	if err := cmd.Start(); err != nil {
		return exitcode.EnvironmentError(err)
	}
	terminate := func() { _ = cmd.Process.Signal(syscall.SIGTERM) } // it may have ended
	defer context.AfterFunc(ctx, terminate)()
	done := make(chan struct{})
	defer close(done)
	go func() {
		select {
		case <-now:
			terminate() // a second time: it kills what still runs
		case <-done:
		}
	}()
	if cluster, ready := control.ReadStart(said, stderr); ready {
		if o.output == "json" {
			return exitcode.EnvironmentError(json.NewEncoder(stdout).Encode(cluster))
		}
		return exitcode.EnvironmentError(writeUsage(stdout, cluster, false))
	}
	err = cmd.Wait() // the supervisor has told already what went wrong
	var exit *exec.ExitError
	switch {
	case !errors.As(err, &exit):
	case exit.ExitCode() == exitcode.Usage:
		return errAlreadyTold
	case !exit.Exited(): // it has told nothing
		return exitcode.EnvironmentError(fmt.Errorf("the control plane did not start: its supervisor was ended by %v", exit))
	}
	return exitcode.EnvironmentError(errAlreadyTold)
}

// errAlreadyTold only carries an exit code.
var errAlreadyTold = errors.New("the control plane did not start")
