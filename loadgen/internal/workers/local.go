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

// Local starts workers as child processes on this machine.
type Local struct {
	// Binary is the path of loadgen; "" means the current program.
	Binary string
}

// A worker has endAfter to end by itself. Then this process closes the worker's pipe, and the worker has killAfter to
// end. A suspended worker does neither, and is killed.
const (
	endAfter  = 2 * time.Second
	killAfter = 5 * time.Second
)

// Describe returns how many processes Start starts.
func (l Local) Describe(count int, _ string) string {
	return fmt.Sprintf("%d processes of this machine", count)
}

// Start starts the processes. They end when this process ends, for any reason. Signals of the terminal do not reach
// them.
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

// awaitEnd reports whether over was closed in time.
func awaitEnd(over <-chan struct{}, within time.Duration) bool {
	timer := time.NewTimer(within)
	defer timer.Stop()
	select {
	case <-over:
		return true
	case <-timer.C:
		return false
	}
}

type child struct {
	cmd   *exec.Cmd
	log   string
	alive *os.File // closing it tells the process to end
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

// wait waits until the process has ended and returns why it ended: the last line of its log, unless it ended normally.
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
