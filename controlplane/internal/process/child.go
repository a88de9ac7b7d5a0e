package process

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

// Child is one process started by a Spawner.
type Child struct {
	Name    string
	PID     int
	Started time.Time

	log     string
	offset  int64 // where this child's output begins in log
	process *os.Process
	done    chan struct{}
	exit    Exit
}

// Exit is how a child ended.
type Exit struct {
	At time.Time
	// Code is the exit code, or -1 if Signal ended it.
	Code   int
	Signal string
	// CPU is user plus system time over the child's life.
	CPU time.Duration
}

// String is "exited with code 1" or "ended by signal killed".
func (e Exit) String() string {
	if e.Signal != "" {
		return "ended by signal " + e.Signal
	}
	return fmt.Sprintf("exited with code %d", e.Code)
}

func (c *Child) wait(cmd *exec.Cmd) {
	_ = cmd.Wait() // the state below says more
	c.exit = Exit{At: time.Now(), Code: cmd.ProcessState.ExitCode(), CPU: cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()}
	if status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		c.exit.Signal = status.Signal().String()
	}
	close(c.done)
}

// Done is closed when the child has ended.
func (c *Child) Done() <-chan struct{} { return c.done }

// Ended reports whether the child has ended.
func (c *Child) Ended() bool {
	select {
	case <-c.done:
		return true
	default:
		return false
	}
}

// Exit is how the child ended. Ask after Done.
func (c *Child) Exit() Exit { return c.exit }

// Signal sends a signal. A child that has ended already is no error.
func (c *Child) Signal(sig os.Signal) error {
	if c.Ended() {
		return nil
	}
	if err := c.process.Signal(sig); err != nil && err != os.ErrProcessDone {
		return fmt.Errorf("signal %s: %w", c.Name, err)
	}
	return nil
}

// Stop asks the child to end, kills it when the grace is over or now is
// closed, and waits until it is gone.
func (c *Child) Stop(grace time.Duration, now <-chan struct{}) Exit {
	_ = c.Signal(syscall.SIGTERM)
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case <-c.done:
		return c.exit
	case <-timer.C:
	case <-now:
	}
	_ = c.Signal(syscall.SIGKILL)
	<-c.done
	return c.exit
}

// Output is the end of what this child has written, at most 64 KiB.
func (c *Child) Output() string { return c.Tail(64 << 10) }

// Tail is the end of what this child has written, at most the given number of bytes.
func (c *Child) Tail(most int64) string {
	f, err := os.Open(c.log)
	if err != nil {
		return ""
	}
	defer f.Close()
	size, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return ""
	}
	if _, err := f.Seek(max(c.offset, size-most), io.SeekStart); err != nil {
		return ""
	}
	data, _ := io.ReadAll(io.LimitReader(f, most))
	return string(data)
}

// LastLines are the last n lines that this child has written.
func (c *Child) LastLines(n int) []string {
	lines := strings.Split(strings.TrimRight(c.Output(), "\n"), "\n")
	if len(lines) == 1 && lines[0] == "" {
		return nil
	}
	return lines[max(0, len(lines)-n):]
}
