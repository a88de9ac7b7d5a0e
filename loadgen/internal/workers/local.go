package workers

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/stormglass/stormglass/controlplane/control"
)

// Local is a Starter that runs the workers as child processes on this machine.
type Local struct {
	// Binary is the path of the loadgen program. "" means the current program.
	Binary string
}

// endAfter is how long a worker process may take to end by itself. Then `stop` closes the pipe to the process and waits
// for the duration killAfter. If the process still runs, for example because it is suspended, `stop` kills it.
const (
	endAfter  = 2 * time.Second
	killAfter = 5 * time.Second
)

// Describe returns the number of processes that Start starts.
func (l Local) Describe(count int, _ string) string {
	return fmt.Sprintf("%d processes on this machine", count)
}

// Start starts the processes. They end when this process ends for any reason. They do not receive signals from the
// terminal.
func (l Local) Start(_ context.Context, i Invitation, ended func(index int, why error)) (Started, error) {
	binary := l.Binary
	if binary == "" {
		var err error
		if binary, err = os.Executable(); err != nil {
			return Started{}, err
		}
	}
	var all sync.WaitGroup
	var children []*child
	stop := func() error {
		over := make(chan struct{})
		go func() { all.Wait(); close(over) }()
		if awaitEnd(over, endAfter) {
			return nil
		}
		for _, c := range children {
			_ = c.alive.Close() // the worker may have ended
		}
		if awaitEnd(over, killAfter) {
			return nil
		}
		for _, c := range children {
			_ = c.cmd.Process.Kill() // the worker may have ended
		}
		<-over
		return nil
	}
	for index := range i.Count {
		c, err := startChild(binary, i, index)
		if err != nil {
			for _, c := range children {
				_ = c.cmd.Process.Kill()
			}
			all.Wait()
			return Started{}, err
		}
		children = append(children, c)
		all.Go(func() { ended(index, c.wait()) })
	}
	return Started{Stop: stop}, nil
}

// awaitEnd waits until `over` is closed, but not longer than `within`. It reports whether `over` was closed.
func awaitEnd(over <-chan struct{}, within time.Duration) bool {
	select {
	case <-over:
		return true
	case <-time.After(within):
		return false
	}
}

type child struct {
	cmd   *exec.Cmd
	log   string
	alive *os.File // pipe to the process: when it is closed, the process ends
}

func startChild(binary string, i Invitation, index int) (*child, error) {
	c := &child{log: filepath.Join(i.Dir, fmt.Sprintf("worker-%d.log", index))}
	log, err := os.Create(c.log)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	c.cmd = exec.Command(binary, "worker", "--coordinator", i.Address, "--ca", i.CAFile, "--token", i.TokenFile, "--index", strconv.Itoa(index))
	c.cmd.Args[0] = os.Args[0]
	c.cmd.Stdout, c.cmd.Stderr = log, log
	c.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if c.alive, err = control.StartAttended(c.cmd); err != nil {
		return nil, err
	}
	return c, nil
}

// wait waits until the process has ended, and returns an error that says how. The error is never nil. It contains the
// last line of the log if the process failed.
func (c *child) wait() error {
	err := c.cmd.Wait()
	_ = c.alive.Close()
	if err == nil {
		return errors.New("it ended early")
	}
	if text, readErr := os.ReadFile(c.log); readErr == nil {
		lines := bytes.Split(bytes.TrimSpace(text), []byte("\n"))
		if last := bytes.TrimPrefix(lines[len(lines)-1], []byte("loadgen: ")); len(last) > 0 {
			return fmt.Errorf("%w: %s", err, last)
		}
	}
	return err
}
