package realnode

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// namespaces are the Linux namespaces of a node for process IDs, mounts and network. When the first process in them
// ends, the kernel kills all other processes in them and removes their mounts.
type namespaces struct {
	first *exec.Cmd
	alive io.Closer   // stdin of the first process, which exits when it reads EOF, such as after this program is killed
	calls chan func() // functions that a thread in the namespaces calls
}

// replaced lists directories to which the container runtime and the kubelet write regardless of their configuration. A
// node mounts its own directories over them.
var replaced = []string{"run", "var/lib", "var/log"}

// firstProcess is the shell script of the first process. It mounts the `replaced` directories in $0, the node's
// directory, over the same directories of this machine, and waits until its input is closed.
var firstProcess = `set -e
mount --make-rprivate /
for d in ` + strings.Join(replaced, " ") + `; do mount --bind "$0/$d" "/$d"; done
mount -t proc proc /proc
ip link set lo up
echo ready
exec cat`

func newNamespaces(dir string) (*namespaces, error) {
	for _, d := range replaced {
		if strings.HasPrefix(dir, "/"+d+"/") {
			return nil, fmt.Errorf("a node's directory cannot be below /%s: %s (set TMPDIR)", d, dir)
		}
		if err := os.MkdirAll(filepath.Join(dir, d), 0o755); err != nil {
			return nil, err
		}
	}
	first := exec.Command("sh", "-c", firstProcess, dir)
	first.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNS | unix.CLONE_NEWNET | unix.CLONE_NEWPID, Setpgid: true}
	var complaint bytes.Buffer
	first.Stderr = &complaint
	in, err := first.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := first.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := first.Start(); err != nil {
		return nil, fmt.Errorf("create namespaces: %w", err)
	}
	s := &namespaces{first: first, alive: in}
	if line, _ := bufio.NewReader(out).ReadString('\n'); line != "ready\n" {
		in.Close()
		return nil, fmt.Errorf("create namespaces: %w: %s", first.Wait(), bytes.TrimSpace(complaint.Bytes()))
	}
	if s.calls, err = enter(first.Process.Pid); err != nil {
		in.Close()
		return nil, errors.Join(fmt.Errorf("enter namespaces: %w", err), first.Wait())
	}
	return s, nil
}

// enter starts a thread in the namespaces of a process, and returns a channel of functions that this thread calls.
func enter(pid int) (chan func(), error) {
	calls, entered := make(chan func()), make(chan error)
	go func() {
		runtime.LockOSThread() // never unlocked, so the thread ends with the goroutine
		err := setns(pid)
		entered <- err
		if err != nil {
			return
		}
		for call := range calls {
			call()
		}
	}()
	return calls, <-entered
}

func setns(pid int) error {
	process, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return err
	}
	defer unix.Close(process)
	// A thread can join a mount namespace only after it has stopped sharing its root directory with other threads.
	if err := unix.Unshare(unix.CLONE_FS); err != nil {
		return err
	}
	return unix.Setns(process, unix.CLONE_NEWNS|unix.CLONE_NEWNET|unix.CLONE_NEWPID)
}

// within calls f on a thread in the namespaces.
func (s *namespaces) within(f func() error) error {
	done := make(chan error)
	s.calls <- func() { done <- f() }
	return <-done
}

// stopWithin is how long a program may take to end after SIGTERM. Then it is killed.
const stopWithin = 20 * time.Second

// start starts a program in the namespaces, and appends its output to a log.
func (s *namespaces) start(log, program string, args ...string) (stop func(), err error) {
	file, err := os.OpenFile(log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(program, args...)
	cmd.Stdout, cmd.Stderr = file, file
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // Ctrl-C in the terminal must not end the program before the node is stopped
	if err := s.within(cmd.Start); err != nil {
		file.Close()
		return nil, err
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = cmd.Wait() // errors are in the log
		file.Close()
	}()
	return sync.OnceFunc(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		select {
		case <-ended:
		case <-time.After(stopWithin):
			_ = cmd.Process.Kill()
			<-ended
		}
	}), nil
}

func (s *namespaces) run(ctx context.Context, program string, args ...string) error {
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Dir = "/"
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := s.within(cmd.Start); err != nil {
		return err
	}
	if err := cmd.Wait(); err != nil {
		return fmt.Errorf("%s: %w: %s", filepath.Base(program), err, bytes.TrimSpace(out.Bytes()))
	}
	return nil
}

// close ends all processes in the namespaces, and waits until they have ended.
func (s *namespaces) close() error {
	close(s.calls)
	s.alive.Close()
	return s.first.Wait()
}
