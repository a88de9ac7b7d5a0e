package cli

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"github.com/stormglass/stormglass/controlplane/control"
	"github.com/stormglass/stormglass/internal/exitcode"
	"github.com/stormglass/stormglass/loadgen/internal/alertproof"
	"github.com/stormglass/stormglass/loadgen/internal/timeline"
	"github.com/stormglass/stormglass/loadgen/result"
)

// windUp is the time limit for an interrupted run to stop its control plane and write its results.
const windUp = 2 * time.Minute

// start runs the scenario of a proof in a separate process, because some proofs stop and continue the generator
// (SIGSTOP, SIGCONT), and a stopped process cannot continue itself. start returns no error if the run fails its own
// gates.
func (p proveOptions) start(ctx context.Context, stderr io.Writer, proof alertproof.Proof, dir string) (err error) {
	own, err := os.Executable()
	if err != nil {
		return err
	}
	text, err := proof.Source()
	if err != nil {
		return err
	}
	temporary, err := os.MkdirTemp("", "stormglass-proof-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(temporary)) }()
	file := filepath.Join(temporary, proof.ScenarioName()+".yaml")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		return err
	}
	args := []string{"run", file, "--out", dir}
	if p.controlPlane != "" {
		args = append(args, "--controlplane", p.controlPlane)
	}
	cmd := exec.CommandContext(ctx, own, args...)
	cmd.Stderr = stderr // without standard output: the report contains what the run prints at its end
	// In a separate process group, the run receives Ctrl-C only from this process. Otherwise it would receive Ctrl-C
	// twice, and end immediately.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = windUp
	// The run ends when this process ends, even if this process is killed.
	alive, err := control.StartAttended(cmd)
	if err != nil {
		return err
	}
	defer alive.Close()
	stalled := make(chan error, 1)
	done, stop := context.WithCancel(ctx)
	go func() { stalled <- stall(done, cmd.Process, proof.Stall, dir) }()
	err = cmd.Wait()
	stop()
	if stallErr := <-stalled; stallErr != nil {
		return stallErr
	}
	var exit *exec.ExitError
	switch {
	case err == nil:
	case errors.As(err, &exit) && (exit.ExitCode() == exitcode.Fail || exit.ExitCode() == exitcode.NoData):
	default:
		if _, missing := os.Stat(filepath.Join(dir, result.MeasurementsFile)); missing != nil {
			return err // the run has already printed the reason
		}
	}
	return nil
}

// stall stops a run's process for a part of each second of a phase. When stall returns, the process is running again.
func stall(ctx context.Context, p *os.Process, s alertproof.Stall, dir string) error {
	if s == (alertproof.Stall{}) {
		return nil
	}
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		began, ended, err := phaseState(dir, s.Phase)
		switch {
		case err != nil:
			return err
		case ended:
			return nil
		case !began:
			continue
		}
		if err := p.Signal(syscall.SIGSTOP); err != nil {
			return ignoreGone(err)
		}
		time.Sleep(s.For)
		if err := p.Signal(syscall.SIGCONT); err != nil {
			return ignoreGone(err)
		}
	}
}

func ignoreGone(err error) error {
	if errors.Is(err, os.ErrProcessDone) {
		return nil
	}
	return err
}

func phaseState(dir, phase string) (began, ended bool, err error) {
	events, err := timeline.Read(dir)
	for _, e := range events {
		if e.Name == phase {
			began, ended = began || e.Kind == result.EventPhaseStart, ended || e.Kind == result.EventPhaseEnd
		}
	}
	return began, ended, err
}
