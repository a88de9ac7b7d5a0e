// Package process runs the programs of a plane. It starts programs so that they cannot outlive the supervisor, keeps
// their output and exit state, and stops them. It also passes the lock of the directory to them and reads their
// resource usage.
package process

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/stormglass/stormglass/controlplane/control"
)

// parentPipeFD and holdFD are file descriptors that a child inherits, in addition to stdin, stdout and stderr.
const (
	parentPipeFD = 3
	holdFD       = 4
)

// Spawner starts child processes that end when this process ends, even if this process is killed by SIGKILL. Two
// independent mechanisms end them: PDEATHSIG (Linux), and a pipe that each child watches (DieWithParent).
//
// The kernel sends PDEATHSIG when the *thread* that forked ends, and the Go runtime may end a thread at any time.
// Therefore one goroutine, which is locked to its thread and runs until Close, starts all children.
type Spawner struct {
	requests chan func()
	pipe     *os.File // read end of the pipe that children watch
	alive    *os.File // write end of the pipe, which only this process holds

	mu        sync.Mutex
	closed    bool
	children  []*Child                 // all running children, and some that have ended
	rotations map[string]*atomic.Int64 // number of rotations of each log, by its path
}

// NewSpawner returns a Spawner. The caller must close it.
func NewSpawner() (*Spawner, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("create the parent pipe: %w", err)
	}
	s := &Spawner{requests: make(chan func()), pipe: r, alive: w, rotations: map[string]*atomic.Int64{}}
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		for start := range s.requests {
			start()
		}
	}()
	return s, nil
}

// Spec describes a process to start.
type Spec struct {
	// Name is the process's name in errors. Args[0] is the program's name.
	Name string
	// Path is the executable.
	Path string
	Args []string
	// Env is the complete environment of the process.
	Env []string
	// Log is the file to which the process appends its stdout and stderr.
	Log string
	// Hold is a file that the child keeps open as long as it lives, or nil. Planes pass the lock of the directory. The
	// directory then stays locked until the last child has ended, even if the supervisor ends earlier.
	Hold *os.File
	// Agent is the child's end of the socket of its fsync agent, or nil. AgentEnv is the environment variable for the
	// descriptor number of Agent in the child.
	Agent    *os.File
	AgentEnv string
	// Descriptors is the child's soft limit of open files. Zero means the limit of this process.
	Descriptors uint64
}

// Start starts one child, in a separate process group, so that Ctrl-C in a terminal reaches only the supervisor.
func (s *Spawner) Start(spec Spec) (*Child, error) {
	log, err := os.OpenFile(spec.Log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", spec.Name, err)
	}
	defer log.Close()
	rotations := s.rotationsOf(spec.Log)
	before := rotations.Load() // read before the offset, so that a rotation between the two reads is counted
	offset, err := log.Seek(0, io.SeekEnd)
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", spec.Name, err)
	}
	cmd := &exec.Cmd{
		Path: spec.Path, Args: spec.Args, Stdout: log, Stderr: log,
		Env:         append(spec.Env, fmt.Sprintf("%s=%d", control.ParentPipeEnv, parentPipeFD)),
		ExtraFiles:  []*os.File{parentPipeFD - 3: s.pipe},
		SysProcAttr: &syscall.SysProcAttr{Setpgid: true},
	}
	if spec.Hold != nil {
		cmd.ExtraFiles = append(cmd.ExtraFiles, spec.Hold)
	}
	if spec.Agent != nil {
		cmd.ExtraFiles = append(cmd.ExtraFiles, spec.Agent)
		cmd.Env = append(cmd.Env, fmt.Sprintf("%s=%d", spec.AgentEnv, parentPipeFD+len(cmd.ExtraFiles)-1))
	}
	if spec.Descriptors > 0 {
		cmd.Env = append(cmd.Env, fmt.Sprintf("%s=%d", descriptorsEnv, spec.Descriptors))
	}
	endWithParent(cmd.SysProcAttr)

	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, fmt.Errorf("start %s: %w", spec.Name, os.ErrClosed)
	}
	started := make(chan error)
	s.requests <- func() { started <- cmd.Start() }
	if err := <-started; err != nil {
		return nil, fmt.Errorf("start %s: %w", spec.Name, err)
	}
	c := &Child{
		Name: spec.Name, PID: cmd.Process.Pid, Started: time.Now(), Offset: offset, log: spec.Log, rotations: rotations, before: before,
		process: cmd.Process, done: make(chan struct{}),
	}
	s.children = append(slices.DeleteFunc(s.children, (*Child).Ended), c)
	go c.wait(cmd)
	return c, nil
}

// Close kills the children that are still running, waits for their end, and ends the thread that starts children.
func (s *Spawner) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return
	}
	s.closed = true
	for _, c := range s.children {
		_ = c.Signal(syscall.SIGKILL)
	}
	for _, c := range s.children {
		<-c.Done()
	}
	close(s.requests)
	s.pipe.Close()
	s.alive.Close()
}

// Child is one process started by a Spawner.
type Child struct {
	Name    string
	PID     int
	Started time.Time

	// Offset is the position in the log file at which the output of this child began. After a rotation, use From instead.
	Offset int64

	log       string
	rotations *atomic.Int64 // number of rotations of the log so far; nil counts as zero
	before    int64         // number of rotations before the start of this child
	process   *os.Process
	done      chan struct{}
	exit      Exit
}

// Exit describes how a child ended.
type Exit struct {
	At time.Time
	// Code is the exit code, or -1 if a signal ended the child.
	Code int
	// Signal is the name of the signal that ended the child, such as SIGKILL. It is empty if the child exited by
	// itself.
	Signal string
	// CPU is the user time plus the system time of the child's whole life.
	CPU time.Duration
}

// String returns a description of the exit, such as "exited with code 1" or "ended by SIGKILL".
func (e Exit) String() string {
	if e.Signal != "" {
		return "ended by " + e.Signal
	}
	return fmt.Sprintf("exited with code %d", e.Code)
}

func (c *Child) wait(cmd *exec.Cmd) {
	_ = cmd.Wait() // ProcessState says more than the error
	c.exit = Exit{At: time.Now(), Code: cmd.ProcessState.ExitCode(), CPU: cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()}
	if status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		c.exit.Signal = control.SignalName(status.Signal())
	}
	close(c.done)
}

// Done returns a channel that is closed when the child has ended.
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

// Exit returns how the child ended. Call Exit only after Done is closed.
func (c *Child) Exit() Exit { return c.exit }

// Signal sends a signal to the child. It returns nil if the child has already ended.
func (c *Child) Signal(sig os.Signal) error {
	if c.Ended() {
		return nil
	}
	if err := c.process.Signal(sig); err != nil && err != os.ErrProcessDone {
		return fmt.Errorf("signal %s: %w", c.Name, err)
	}
	return nil
}

// Stop sends SIGTERM to the child and waits until the child has ended. It kills the child when the grace period is over
// or when the channel `now` is closed.
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
	if !c.Ended() { // the child may have ended just when the grace period was over
		_ = c.Signal(syscall.SIGKILL)
	}
	<-c.done
	return c.exit
}

// Output returns the last 64 KiB of this child's output.
func (c *Child) Output() string { return c.Tail(64 << 10) }

func (c *Child) rotated() int64 {
	if c.rotations == nil {
		return 0
	}
	return c.rotations.Load() - c.before
}

// From returns the position in the log file at which the output of this child begins: Offset, or 0 if the log was
// rotated since the start of this child.
func (c *Child) From() int64 {
	if c.rotated() > 0 {
		return 0
	}
	return c.Offset
}

// Tail returns the end of this child's output, at most the given number of bytes. It also reads the newest rotated copy
// of the log.
func (c *Child) Tail(most int64) string {
	last := tail(c.log, c.From(), most)
	rotated, rest := c.rotated(), most-int64(len(last))
	switch {
	case rotated == 0 || rest <= 0:
		return last
	case rotated == 1:
		return tail(RotatedLog(c.log), c.Offset, rest) + last
	}
	return tail(RotatedLog(c.log), 0, rest) + last
}

// tail returns the end of a file, at most `most` bytes, but nothing before the position `from`.
func tail(file string, from, most int64) string {
	f, err := os.Open(file)
	if err != nil {
		return ""
	}
	defer f.Close()
	size, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return ""
	}
	if _, err := f.Seek(max(from, size-most), io.SeekStart); err != nil {
		return ""
	}
	data, _ := io.ReadAll(io.LimitReader(f, most))
	return string(data)
}

// LastLines returns the last n lines of this child's output.
func (c *Child) LastLines(n int) []string {
	lines := strings.Split(strings.TrimRight(c.Output(), "\n"), "\n")
	if len(lines) == 1 && lines[0] == "" {
		return nil
	}
	return lines[max(0, len(lines)-n):]
}
