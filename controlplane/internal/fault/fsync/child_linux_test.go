package fsync_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/stormglass/stormglass/controlplane/internal/fault/fsync"
)

// childEnv makes the test binary run as the child. Its value is the child's directory.
const childEnv = "FSYNC_TEST_CHILD"

// The kernel delivers a process's signals to its main thread first. A delayed call in the main thread would keep
// SIGSTOP from the other threads. The child therefore makes its calls in other threads.
func init() {
	if os.Getenv(childEnv) != "" {
		runtime.LockOSThread()
	}
}

func TestMain(m *testing.M) {
	if dir := os.Getenv(childEnv); dir != "" {
		os.Exit(playChild(dir))
	}
	os.Exit(m.Run())
}

// threads is the number of threads in which the child makes its calls. All of them start before any filter is
// installed.
const threads = 4

// playChild makes the calls that stdin lists, one on each line ("fsync NAME" or "fdatasync NAME"), each on one of its
// threads. It prints "NAME DURATION" for each. It ends at the end of stdin.
func playChild(dir string) int {
	if os.Getenv(filteredEnv) != "" { // before the supervisor can send a request to the agent
		if err := filterOneThread(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
	}
	if err := fsync.StartAgent(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	var printing sync.Mutex
	lines := make(chan string)
	for range threads {
		go func() {
			runtime.LockOSThread()
			for line := range lines {
				call, name, _ := strings.Cut(line, " ")
				took, err := syncFile(filepath.Join(dir, name), call)
				printing.Lock()
				if err != nil {
					fmt.Println(name, err)
				} else {
					fmt.Println(name, took)
				}
				printing.Unlock()
			}
		}()
	}
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		lines <- in.Text()
	}
	return 0
}

func syncFile(path, call string) (time.Duration, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	if _, err := f.WriteString("entry"); err != nil {
		return 0, err
	}
	sync := unix.Fsync
	if call == "fdatasync" {
		sync = unix.Fdatasync
	}
	start := time.Now()
	err = sync(int(f.Fd()))
	return time.Since(start), err
}

type child struct {
	t     *testing.T
	cmd   *exec.Cmd
	agent *fsync.Agent
	in    io.Writer
	out   *bufio.Scanner
}

func startChild(t *testing.T, env ...string) *child {
	t.Helper()
	agent, end, err := fsync.NewAgent()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(append(os.Environ(), env...), childEnv+"="+t.TempDir(), fsync.AgentEnv+"=3")
	cmd.ExtraFiles = []*os.File{end}
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	end.Close()
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		agent.Close()
	})
	return &child{t: t, cmd: cmd, agent: agent, in: in, out: bufio.NewScanner(out)}
}

// begin makes the child start a call, such as "fdatasync x.wal", and does not wait for it.
func (c *child) begin(line string) {
	c.t.Helper()
	if _, err := fmt.Fprintln(c.in, line); err != nil {
		c.t.Fatal(err)
	}
}

// returned waits until a call has returned, and returns its duration.
func (c *child) returned() time.Duration {
	c.t.Helper()
	if !c.out.Scan() {
		c.t.Fatalf("the child has ended: %v", c.out.Err())
	}
	_, text, _ := strings.Cut(c.out.Text(), " ")
	took, err := time.ParseDuration(text)
	if err != nil {
		c.t.Fatalf("a call of the child failed: %s", c.out.Text())
	}
	return took
}

func (c *child) call(line string) time.Duration {
	c.t.Helper()
	c.begin(line)
	return c.returned()
}

func (c *child) set(d fsync.Delay) {
	c.t.Helper()
	if err := c.agent.Set(c.t.Context(), d); err != nil {
		c.t.Fatal(err)
	}
}

func (c *child) clear() {
	c.t.Helper()
	if err := c.agent.Clear(c.t.Context()); err != nil {
		c.t.Fatal(err)
	}
}

func (c *child) stats() fsync.Stats {
	c.t.Helper()
	s, err := c.agent.Stats(context.Background())
	if err != nil {
		c.t.Fatal(err)
	}
	return s
}

// startHeldChild starts a child with one delayed call.
func startHeldChild(t *testing.T) *child {
	t.Helper()
	c := startChild(t)
	c.set(fsync.Delay{Delay: forEver})
	c.begin("fdatasync x.wal")
	c.waiting(1)
	return c
}

// waiting waits until n calls are delayed.
func (c *child) waiting(n int64) {
	c.t.Helper()
	for c.stats().Waiting != n {
		runtime.Gosched()
	}
}

// tasks returns the directories of the child's threads in /proc.
func (c *child) tasks() []string {
	c.t.Helper()
	tasks, err := filepath.Glob("/proc/" + strconv.Itoa(c.cmd.Process.Pid) + "/task/*")
	if err != nil || len(tasks) < threads {
		c.t.Fatal(tasks, err)
	}
	return tasks
}

// running returns the number of the child's threads that are not stopped.
func (c *child) running() (n int) {
	c.t.Helper()
	for _, task := range c.tasks() {
		stat, err := os.ReadFile(filepath.Join(task, "stat"))
		if err != nil {
			continue // the thread has ended
		}
		// The state follows the thread's name. The name may contain any characters.
		if _, state, _ := strings.Cut(string(stat[strings.LastIndexByte(string(stat), ')'):]), " "); state[0] != 'T' {
			n++
		}
	}
	return n
}
