package control

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/stormglass/stormglass/internal/exitcode"
)

// Exit codes of the controlplane program.
const (
	ExitUsage       = exitcode.Usage
	ExitEnvironment = exitcode.Environment
)

// StartOptions describes the plane that Start starts.
type StartOptions struct {
	// Binary is the controlplane program, Dir the plane's directory.
	Binary, Dir string
	// Config is passed on stdin, nil keeps that of the last start in Dir.
	Config *Config
	// Progress receives the supervisor's messages, or nil.
	Progress io.Writer
}

// Supervisor is a running `controlplane up` that cannot outlive this process.
type Supervisor struct {
	cluster Cluster
	cmd     *exec.Cmd
	alive   *os.File // the write end of the parent pipe
	stderr  *tail
	done    chan struct{}
	err     error
}

// ExitError says that the supervisor ended, or never got its plane ready.
type ExitError struct {
	// Code is its exit code: ExitUsage or ExitEnvironment, -1 for a signal.
	Code int
	// Msg is its last message.
	Msg string
}

func (e *ExitError) Error() string { return e.Msg }

// Start starts a supervisor and returns when its plane is ready, or has
// failed: an *ExitError. If this process ends, however it ends, so do the
// supervisor and all components. ctx only bounds the start.
func Start(ctx context.Context, o StartOptions) (*Supervisor, error) {
	cmd := exec.Command(o.Binary, "up", "--dir", o.Dir, "--output", "json")
	if o.Config != nil {
		config, err := json.Marshal(o.Config) // JSON is YAML
		if err != nil {
			return nil, err
		}
		cmd.Args = append(cmd.Args, "--config", "-")
		cmd.Stdin = bytes.NewReader(config)
	}
	s := &Supervisor{cmd: cmd, stderr: &tail{to: o.Progress}, done: make(chan struct{})}
	cmd.Stderr = s.stderr
	said, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	// A session of its own: a terminal's Ctrl-C is this process's to handle, and a kernel that
	// groups tasks by session (autogroup) weighs this process against the plane as a whole.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if s.alive, err = StartAttended(cmd); err != nil {
		return nil, fmt.Errorf("start %s: %w", o.Binary, err)
	}
	ready := make(chan error, 1)
	go func() {
		ready <- json.NewDecoder(said).Decode(&s.cluster)
		_, _ = io.Copy(io.Discard, said) // to its end
		s.wait()
	}()
	select {
	case err = <-ready:
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	switch {
	case err == nil:
		return s, nil
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF): // it has ended
		<-s.done
		if s.err == nil {
			s.err = &ExitError{Msg: "the control plane ended before it was ready"}
		}
		return nil, s.err
	}
	_ = s.Stop(context.WithoutCancel(ctx))
	return nil, fmt.Errorf("start the control plane: %w", err)
}

func (s *Supervisor) wait() {
	err := s.cmd.Wait()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		msg := strings.TrimPrefix(s.stderr.lastMessage(), "controlplane: ")
		if status, ok := exit.Sys().(syscall.WaitStatus); ok && status.Signaled() { // what it said before is no reason
			msg = fmt.Sprintf("its supervisor was ended by signal %v", status.Signal())
		}
		err = &ExitError{Code: exit.ExitCode(), Msg: msg}
	}
	s.err = err
	s.alive.Close()
	close(s.done)
}

// Cluster describes the plane.
func (s *Supervisor) Cluster() Cluster { return s.cluster }

// Done is closed when the supervisor has ended, and its components with it.
func (s *Supervisor) Done() <-chan struct{} { return s.done }

// Err is the reason of its end: nil after Stop. Call it after Done.
func (s *Supervisor) Err() error { return s.err }

// stopWithin is more than a stop takes at most: 8 s to undo faults, 5 s more for a
// webhook that was being begun, 30 s for the processes and one for the last answers.
const stopWithin = 50 * time.Second

// Stop stops the plane in order and waits for the end. When ctx ends first, or
// the supervisor takes too long, everything is killed.
func (s *Supervisor) Stop(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, stopWithin)
	defer cancel()
	_ = s.cmd.Process.Signal(syscall.SIGTERM) // it may have ended already
	select {
	case <-s.done:
		return s.err
	case <-ctx.Done():
		_ = s.cmd.Process.Kill() // its components end with it
		<-s.done
		return fmt.Errorf("stop the control plane: killed: %w", ctx.Err())
	}
}

// ReadStart reads the output of a starting supervisor, its messages and its
// result (`up --output json`) in one stream. It passes the messages on and returns
// at the result, with what was said before it passed on; ready is false if the
// stream ends without one. A message that cannot be passed on is lost.
func ReadStart(said io.Reader, messages io.Writer) (_ Cluster, ready bool) {
	lines := bufio.NewReader(said)
	for {
		line, err := lines.ReadBytes('\n')
		var c Cluster
		if json.Unmarshal(line, &c) == nil && c.Schema == ClusterSchema {
			return c, true
		}
		_, _ = messages.Write(line)
		if err != nil {
			return Cluster{}, false
		}
	}
}

// tail passes on what is written and keeps the end of it.
type tail struct {
	to io.Writer

	mu   sync.Mutex
	last []byte
}

const tailBytes = 16 << 10

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	t.last = append(t.last, p...)
	t.last = t.last[max(0, len(t.last)-tailBytes):]
	t.mu.Unlock()
	if t.to == nil {
		return len(p), nil
	}
	return t.to.Write(p)
}

// lastMessage is the program's error, with all its lines, or else the last line.
func (t *tail) lastMessage() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	text := strings.TrimSpace(string(t.last))
	if at := strings.LastIndex("\n"+text, "\ncontrolplane: "); at >= 0 {
		return text[at:]
	}
	return text[strings.LastIndexByte(text, '\n')+1:]
}

// ParentPipeEnv names the environment variable with the number of an inherited
// descriptor: the read end of a pipe whose write end only the parent holds.
// End of file on it means that the parent is gone, however it ended; the
// process then kills itself at once. The supervisor obeys it (set by Start),
// and so does each component (set by the supervisor).
const ParentPipeEnv = "STORMGLASS_PARENT_PIPE"

// StartAttended starts a program that obeys ParentPipeEnv, in the environment of this
// process. Close alive when the program has ended.
func StartAttended(cmd *exec.Cmd) (alive *os.File, err error) {
	parent, alive, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer parent.Close()
	cmd.ExtraFiles = []*os.File{parent} // descriptor 3
	cmd.Env = append(os.Environ(), ParentPipeEnv+"=3")
	if err := cmd.Start(); err != nil {
		return nil, errors.Join(err, alive.Close())
	}
	return alive, nil
}

// DirEnv names the plane's directory for all subcommands without --dir.
const DirEnv = "STORMGLASS_DIR"
