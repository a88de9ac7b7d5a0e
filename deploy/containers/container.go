package containers

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"time"
)

// stopsWithin is the time that a program may take to end after a request to end.
const stopsWithin = 30 * time.Second

// Container is a running container, by the command that runs it.
type Container struct {
	name, log string
	cmd       *exec.Cmd
	done      chan struct{}
	err       error
}

// start starts a command with its output in the file log. When this process ends, however it ends, the command gets the
// signal orphaned.
func start(name, log string, argv []string, orphaned syscall.Signal) (*Container, error) {
	out, err := os.Create(log) // no pipe: a command that writes to a broken one is killed before it has cleaned up
	if err != nil {
		return nil, err
	}
	defer out.Close()
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Stdout, cmd.Stderr = out, out
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // Ctrl-C is this process's to handle
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

// Done is closed when the container has ended.
func (c *Container) Done() <-chan struct{} { return c.done }

// Log returns what it has written, and how it ended if it has.
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

// Stop asks the program to end and waits for it. A program that ends otherwise than with 0 is an error.
func (c *Container) Stop() error {
	if err := c.end(syscall.SIGTERM); err != nil {
		return fmt.Errorf("%s: %w", c.name, err)
	}
	if c.err != nil {
		return fmt.Errorf("%s: %w\n%s", c.name, c.err, c.Log())
	}
	return nil
}

// end sends a signal and waits until the command has ended.
func (c *Container) end(s syscall.Signal) error {
	if err := c.cmd.Process.Signal(s); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	select {
	case <-c.done:
		return nil
	case <-time.After(stopsWithin):
		_ = c.cmd.Process.Kill() // it may have ended meanwhile
		<-c.done
		return fmt.Errorf("not ended %v after %v: killed", stopsWithin, s)
	}
}
