package containers

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"time"
)

// stopsWithin is the maximum time that a program may take to end after a signal.
const stopsWithin = 30 * time.Second

// Container is a running container: the command that runs it in the foreground.
type Container struct {
	name, log string
	cmd       *exec.Cmd
	done      chan struct{}
	err       error
}

// start starts a command whose output goes to the file log. On Linux, the kernel sends the signal `orphaned` to the
// command when this process ends, even by a crash.
func start(name, log string, argv []string, orphaned syscall.Signal) (*Container, error) {
	out, err := os.Create(log) // not a pipe: a write to a broken pipe would kill the command before it has cleaned up
	if err != nil {
		return nil, err
	}
	defer out.Close()
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Stdout, cmd.Stderr = out, out
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // only this process handles Ctrl-C
	endWithParent(cmd.SysProcAttr, orphaned)
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	c := &Container{name: name, log: log, cmd: cmd, done: make(chan struct{})}
	go func() {
		c.err = cmd.Wait()
		close(c.done)
	}()
	return c, nil
}

// Done returns a channel that is closed when the container has ended.
func (c *Container) Done() <-chan struct{} { return c.done }

// Log returns the output of the container so far. If the container has ended, a last line says how.
func (c *Container) Log() string {
	text, err := os.ReadFile(c.log)
	if err != nil {
		return err.Error()
	}
	select {
	case <-c.done:
		return fmt.Sprintf("%s%s ended: %v\n", text, c.name, c.cmd.ProcessState)
	default:
		return string(text)
	}
}

// Stop sends SIGTERM to the container and waits until the container has ended. It returns an error if the exit code is not 0.
func (c *Container) Stop() error {
	if err := c.end(syscall.SIGTERM); err != nil {
		return fmt.Errorf("%s: %w", c.name, err)
	}
	if c.err != nil {
		return fmt.Errorf("%s: %w\n%s", c.name, c.err, c.Log())
	}
	return nil
}

// end sends a signal and waits until the command has ended. It kills the command after stopsWithin, and then returns an error.
func (c *Container) end(s syscall.Signal) error {
	if err := c.cmd.Process.Signal(s); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	select {
	case <-c.done:
		return nil
	case <-time.After(stopsWithin):
		_ = c.cmd.Process.Kill() // an error means that it has just ended
		<-c.done
		return fmt.Errorf("the container was still running %v after %v; killed it", stopsWithin, s)
	}
}
