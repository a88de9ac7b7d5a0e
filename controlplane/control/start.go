package control

import (
	"bufio"
	"bytes"
	"cmp"
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

	"golang.org/x/sys/unix"

	"github.com/stormglass/stormglass/internal/exitcode"
)

// Exit codes of the controlplane program.
const (
	ExitUsage       = exitcode.Usage
	ExitEnvironment = exitcode.Environment
)

// StartOptions describes the plane that Start starts.
type StartOptions struct {
	// Binary is the path of the controlplane program, and Dir the plane's directory.
	Binary, Dir string
	// Config is passed on stdin. Nil keeps the config of the last start in Dir.
	Config *Config
	// Progress receives the supervisor's messages. Nil discards them.
	Progress io.Writer
}

// Supervisor is a running `controlplane up` that cannot outlive this process.
type Supervisor struct {
	cluster Cluster
	cmd     *exec.Cmd
	alive   *os.File // write end of the parent pipe; closing it ends the supervisor
	stderr  *tail
	done    chan struct{}
	err     error
}

// ExitError is the error of a supervisor that ended, before or after its plane was ready.
type ExitError struct {
	// Code is the exit code: ExitUsage or ExitEnvironment, or -1 for a signal.
	Code int
	// Msg is the supervisor's last message.
	Msg string
}

func (e *ExitError) Error() string { return e.Msg }

// Start starts a supervisor and returns when its plane is ready. If the plane fails, Start returns an *ExitError. The
// supervisor and all components end when this process ends for any reason. ctx bounds only the start: a plane that is
// ready keeps running when ctx ends.
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
	// The supervisor runs in a separate session for two reasons. Ctrl-C in a terminal then reaches only this process.
	// And a kernel that groups tasks by session (autogroup) treats the whole plane as one group, separate from this
	// process.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if s.alive, err = StartAttended(cmd); err != nil {
		return nil, fmt.Errorf("start %s: %w", o.Binary, err)
	}
	ready := make(chan error, 1)
	go func() {
		ready <- json.NewDecoder(said).Decode(&s.cluster)
		_, _ = io.Copy(io.Discard, said) // until the supervisor ends
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
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF): // the supervisor has ended
		<-s.done
		if s.err == nil {
			s.err = &ExitError{Msg: "the control plane ended before it was ready"}
		}
		return nil, s.err
	}
	_ = s.StopNow(context.WithoutCancel(ctx))
	return nil, fmt.Errorf("start the control plane: %w", err)
}

func (s *Supervisor) wait() {
	err := s.cmd.Wait()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		msg := strings.TrimPrefix(s.stderr.lastMessage(), "controlplane: ")
		if signal := SignalOf(exit); signal != "" { // its last message does not explain the signal
			msg = "its supervisor process was killed by " + signal
		}
		err = &ExitError{Code: exit.ExitCode(), Msg: cmp.Or(msg, fmt.Sprintf("%s exited with code %d and printed no message", s.cmd.Path, exit.ExitCode()))}
	}
	s.err = err
	s.alive.Close()
	close(s.done)
}

// SignalOf returns the name of the signal that ended a process, such as "SIGTERM", or "" if it exited.
func SignalOf(exit *exec.ExitError) string {
	if status, ok := exit.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return SignalName(status.Signal())
	}
	return ""
}

// SignalName returns the name of a signal, such as "SIGKILL", or its description if it has no name.
func SignalName(signal syscall.Signal) string {
	return cmp.Or(unix.SignalName(signal), signal.String())
}

// Cluster returns the description of the plane.
func (s *Supervisor) Cluster() Cluster { return s.cluster }

// Done returns a channel that is closed when the supervisor and its components have ended.
func (s *Supervisor) Done() <-chan struct{} { return s.done }

// Err returns the reason why the supervisor ended, or nil if Stop ended it. Call Err only after Done is closed.
func (s *Supervisor) Err() error { return s.err }

// StopWithin is the time limit of a graceful stop. The stop takes up to 49 s: 8 s to undo faults, 5 s more for a
// webhook that is being registered, 35 s for the processes and 1 s for the last responses. The rest is a margin for a
// busy machine.
const StopWithin = 55 * time.Second

// stopWithin and stopNowWithin are the time limits of Stop and StopNow. After StopNow, the supervisor kills the
// components without waiting.
var stopWithin, stopNowWithin = StopWithin, 10 * time.Second

// Stop stops the plane gracefully and waits until it has ended. If ctx ends first, or the supervisor takes longer than
// StopWithin, Stop kills all processes.
func (s *Supervisor) Stop(ctx context.Context) error { return s.stop(ctx, stopWithin, syscall.SIGTERM) }

// StopNow is like Stop, but the supervisor kills the components, and has only 10 s for that. Use it if the plane's data
// and audit logs are not needed afterwards.
func (s *Supervisor) StopNow(ctx context.Context) error {
	return s.stop(ctx, stopNowWithin, syscall.SIGTERM, syscall.SIGINT) // two different signals: the kernel could merge two equal signals
}

func (s *Supervisor) stop(ctx context.Context, limit time.Duration, signals ...os.Signal) error {
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("it took longer than %s", limit))
	defer cancel()
	for _, sig := range signals {
		_ = s.cmd.Process.Signal(sig) // an error means that the supervisor has already ended
	}
	select {
	case <-s.done:
		return s.err
	case <-ctx.Done():
		// The components end with the supervisor. If the supervisor is a script, its children hold its output open, so
		// kill the process group.
		_ = syscall.Kill(-s.cmd.Process.Pid, syscall.SIGKILL)
		<-s.done
		return fmt.Errorf("the control plane did not stop and was killed: %w", context.Cause(ctx))
	}
}

// ReadStart reads the output of a starting supervisor (`up --output json`): one stream with progress messages and then
// the result. It copies the progress messages to `messages`, ignores write errors, and returns once it has read the
// result. ready is false if the stream ends without a result.
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

// tail is a writer that forwards all data to another writer and keeps the last tailBytes bytes.
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

// lastMessage returns all lines of the program's error message, or the last line of the output if there is no error
// message.
func (t *tail) lastMessage() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	text := strings.TrimSpace(string(t.last))
	if at := strings.LastIndex("\n"+text, "\ncontrolplane: "); at >= 0 {
		return text[at:]
	}
	return text[strings.LastIndexByte(text, '\n')+1:]
}

// ParentPipeEnv is the environment variable with the number of an inherited descriptor: the read end of a pipe whose
// write end only the parent holds. End of file on the pipe means that the parent has ended for any reason. The process
// then kills itself immediately. Start sets the variable for the supervisor, and the supervisor sets it for each
// component.
const ParentPipeEnv = "STORMGLASS_PARENT_PIPE"

// StartAttended starts a program that ends when this process ends, because the program obeys ParentPipeEnv. The program
// inherits the environment of this process. The caller must close `alive` when the program has ended.
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

// DirEnv is the environment variable with the plane's directory for all subcommands without --dir.
const DirEnv = "STORMGLASS_DIR"
