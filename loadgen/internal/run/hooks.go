package run

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"syscall"
	"time"
	"unicode"

	"github.com/stormglass/stormglass/internal/exitcode"
	"github.com/stormglass/stormglass/loadgen/internal/plan"
	"github.com/stormglass/stormglass/loadgen/result"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

// checkHooks returns an error for each required hook whose program is not found on this machine.
func (o Options) checkHooks(p *plan.Plan) error {
	var errs []error
	for _, h := range p.Hooks {
		if _, err := exec.LookPath(h.Run[0]); err != nil && h.MustPass() {
			var cause *exec.Error
			if errors.As(err, &cause) {
				err = cause.Err
			}
			errs = append(errs, exitcode.EnvironmentError(p.Errorf(h.Path+".run", "install it, or leave out hooks with --no-hooks", "%s cannot be run here: %v", h.Run[0], err)))
		}
	}
	return errors.Join(errs...)
}

type hooks struct {
	journal
	dir       string // directory of the run
	namespace string
	// kubeconfig writes a kubeconfig for the commands. remove deletes it.
	kubeconfig func() (file string, remove func() error, err error)
	ran        []result.Hook
}

// run runs the hooks of a phase one after another. `when` is "before" or "after". run stops at the first required hook
// that fails.
func (hs *hooks) run(ctx context.Context, p *plan.Plan, phase, when string) error {
	n := 0
	for _, h := range p.Hooks {
		if h.Phase != phase || h.When != when {
			continue
		}
		n++
		if err := hs.one(ctx, h, path.Join(result.HookDir, fmt.Sprintf("%s-%s-%d.log", phase, when, n))); err != nil {
			return err
		}
	}
	return nil
}

func (hs *hooks) one(ctx context.Context, h scenario.PlacedHook, output string) error {
	hs.step("hook %s", h)
	began := time.Now()
	failed := hs.execute(ctx, h, output)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	took := time.Since(began)
	ran := result.Hook{Phase: h.Phase, When: h.When, Command: h.Hook.String(), Required: h.MustPass(), Began: began.UTC(), Seconds: took.Seconds(), Output: output}
	if failed != nil {
		ran.Failed = failed.Error()
	}
	hs.ran = append(hs.ran, ran)
	hs.event(began, result.EventNote, "hook", fmt.Sprintf("%s, %s", h, outcome(failed, took)))
	switch {
	case failed == nil:
		return nil
	case h.MustPass():
		return exitcode.Environmentf("hook %s: %w (full output: %s)", h, failed, output)
	}
	hs.step("note: hook %s: %v", h, failed)
	return nil
}

func outcome(failed error, took time.Duration) string {
	if failed != nil {
		return failed.Error()
	}
	return fmt.Sprintf("exit code 0 after %s", took.Round(time.Millisecond))
}

func (hs *hooks) execute(ctx context.Context, h scenario.PlacedHook, output string) error {
	file := filepath.Join(hs.dir, filepath.FromSlash(output))
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return err
	}
	out, err := os.OpenFile(file, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	defer out.Close()
	kubeconfig, remove, err := hs.kubeconfig()
	if err != nil {
		return err
	}
	env := append(os.Environ(),
		"KUBECONFIG="+kubeconfig, "STORMGLASS_RUN_DIR="+hs.dir, "STORMGLASS_PHASE="+h.Phase, "STORMGLASS_NAMESPACE="+hs.namespace)
	failed := command(ctx, h.Run, env, h.Within.D(), out)
	if err := remove(); err != nil {
		hs.step("could not remove the kubeconfig of hook %s: %v", h, err)
	}
	if failed == nil {
		return nil
	}
	if last := lastLine(file); last != "" {
		return fmt.Errorf("%w: %s", failed, last)
	}
	return failed
}

// hookGrace is the time that a command has to end after SIGTERM. After this time, it gets SIGKILL.
const hookGrace = 5 * time.Second

// command runs a program in a separate process group. When the program has ended, command kills the rest of the group, so
// that a hook leaves no process behind.
func command(ctx context.Context, argv, env []string, within time.Duration, out *os.File) error {
	ctx, cancel := context.WithTimeoutCause(ctx, within, fmt.Errorf("the command did not end within %s", scenario.Duration(within)))
	defer cancel()
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Env, cmd.Stdout, cmd.Stderr = env, out, out
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
	cmd.WaitDelay = hookGrace
	err := cmd.Start()
	if err == nil {
		err = cmd.Wait()
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // children that still run; usually none
	}
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil && err != nil:
		return context.Cause(ctx)
	case errors.As(err, &exit) && exit.Exited():
		return fmt.Errorf("exit code %d", exit.ExitCode())
	}
	return err
}

const (
	// tail is the number of bytes at the end of the output in which lastLine looks for the last line. lineLength is the
	// maximum length of this line in errors, in characters.
	tail       = 8 << 10
	lineLength = 200
)

// lastLine returns the last non-empty line of a file, without unprintable characters. It returns "" if the file
// cannot be read.
func lastLine(file string) string {
	f, err := os.Open(file)
	if err != nil {
		return ""
	}
	defer f.Close()
	size, err := f.Seek(0, 2)
	if err != nil {
		return ""
	}
	data := make([]byte, min(size, tail))
	if _, err := f.ReadAt(data, size-int64(len(data))); err != nil {
		return ""
	}
	lines := strings.Split(strings.TrimSpace(string(data)), "\n")
	last := strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return -1
		}
		return r
	}, strings.ToValidUTF8(lines[len(lines)-1], ""))
	if runes := []rune(last); len(runes) > lineLength {
		last = string(runes[:lineLength]) + "…"
	}
	return last
}
