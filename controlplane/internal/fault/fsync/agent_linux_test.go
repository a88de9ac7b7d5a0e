package fsync_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/stormglass/stormglass/controlplane/control"
	"github.com/stormglass/stormglass/controlplane/internal/fault/fsync"
)

// forEver is longer than any test. A call that returns in spite of this delay was released.
const forEver = time.Hour

func TestFsyncDelayIsAvailable(t *testing.T) {
	if err := fsync.Available(); err != nil {
		t.Fatal(err)
	}
	if err := fsync.Available(); err != nil {
		t.Errorf("second call of Available = %v, want nil", err)
	}
}

func TestCallsOnTheWALWait(t *testing.T) {
	c := startChild(t)
	c.call("fdatasync x.wal")
	if s := c.stats(); s.Seen != 0 {
		t.Errorf("calls reached the agent before Set: %+v", s)
	}

	const delay = 30 * time.Millisecond
	c.set(fsync.Delay{Delay: delay})
	for i, call := range []string{"fdatasync x.wal", "fsync x.wal"} {
		if took := c.call(call); took < delay {
			t.Errorf("%s took %s with a delay of %s", call, took, delay)
		}
		if s := c.stats(); s.Delayed != int64(i+1) {
			t.Errorf("after %s: stats %+v", call, s)
		}
	}
	c.call("fdatasync db")
	if s := c.stats(); s.Delayed != 2 || s.Seen != 3 {
		t.Errorf("a file that is not the WAL was delayed: %+v", s)
	}

	c.set(fsync.Delay{Delay: delay, Files: control.FaultFilesAll})
	if took := c.call("fdatasync db"); took < delay {
		t.Errorf("with Files: all, fdatasync of db took %s", took)
	}

	c.clear()
	c.call("fdatasync x.wal")
	if s := c.stats(); s != (fsync.Stats{Seen: 5, Delayed: 3}) {
		t.Errorf("a call after Clear was delayed: %+v", s)
	}

	c.set(fsync.Delay{Delay: delay})
	if took := c.call("fdatasync x.wal"); took < delay {
		t.Errorf("after a second Set, a call took %s", took)
	}
}

func TestClearReleasesConcurrentCalls(t *testing.T) {
	c := startChild(t)
	c.set(fsync.Delay{Delay: forEver})
	for range threads {
		c.begin("fdatasync x.wal")
	}
	c.waiting(threads)
	c.clear()
	for range threads {
		c.returned()
	}
	if s := c.stats(); s != (fsync.Stats{Seen: threads, Delayed: threads}) {
		t.Errorf("stats = %+v, want all calls delayed", s)
	}
}

func TestShorterDelayAppliesToLaterCalls(t *testing.T) {
	c := startChild(t)
	c.set(fsync.Delay{Delay: forEver})
	c.begin("fdatasync first.wal")
	c.waiting(1)
	c.set(fsync.Delay{Delay: time.Millisecond})
	c.call("fdatasync second.wal")
	c.waiting(1)
	c.clear()
	c.returned()
}

func TestJitterStaysInItsBounds(t *testing.T) {
	c := startChild(t)
	c.set(fsync.Delay{Delay: 10 * time.Millisecond, Jitter: 5 * time.Millisecond, Seed: 7})
	for range 20 {
		if took := c.call("fdatasync x.wal"); took < 5*time.Millisecond {
			t.Errorf("a call took %s with a delay of 10 ms and a jitter of 5 ms", took)
		}
	}
	if s := c.stats(); s.Delayed != 20 {
		t.Errorf("stats = %+v, want 20 delayed calls", s)
	}
}

func TestSupervisorExitReleasesCalls(t *testing.T) {
	c := startHeldChild(t)
	c.agent.Close()
	c.returned()
	c.call("fdatasync x.wal") // later calls are not delayed either
}

// The Go runtime and etcd's supervisor often send signals. These signals must neither shorten nor restart a delay.
func TestSignalsDoNotInterruptCall(t *testing.T) {
	c := startHeldChild(t)
	tasks := c.tasks()
	for range 5 {
		for _, task := range tasks {
			tid, err := strconv.Atoi(filepath.Base(task))
			if err != nil {
				t.Fatal(err)
			}
			// ESRCH: the thread may have ended in the meantime.
			if err := unix.Tgkill(c.cmd.Process.Pid, tid, syscall.SIGURG); err != nil && err != unix.ESRCH {
				t.Fatal(err)
			}
		}
		c.waiting(1)
	}
	c.clear()
	c.returned()
	if s := c.stats(); s.Delayed != 1 {
		t.Errorf("stats after one call with signals = %+v, want one delayed call", s)
	}
}

func TestStoppedChildAnswersAfterContinue(t *testing.T) {
	c := startHeldChild(t)
	if err := c.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	// The kernel never reports the whole process as stopped, because only a fatal signal interrupts the delayed call.
	for running := c.running(); running > 1; running = c.running() {
		runtime.Gosched()
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if err := c.agent.Clear(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Clear of a stopped child = %v, want a deadline error", err)
	}
	if err := c.cmd.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	c.returned() // the child executes the Clear whose caller gave up
	if s := c.stats(); s.Waiting != 0 || s.Delayed != 1 {
		t.Errorf("the response to an abandoned request counts as the response to another: %+v", s)
	}
}

func TestDeadChildIsAnError(t *testing.T) {
	c := startHeldChild(t)
	if err := c.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_, _ = c.cmd.Process.Wait()
	if err := c.agent.Set(t.Context(), fsync.Delay{Delay: time.Second}); err == nil {
		t.Error("Set of a dead child returned no error")
	}
}

func TestAgentEnvIsChecked(t *testing.T) {
	for _, text := range []string{"three", "99999"} {
		t.Setenv(fsync.AgentEnv, text)
		if err := fsync.StartAgent(); err == nil {
			t.Errorf("StartAgent with %s=%s returned no error", fsync.AgentEnv, text)
		}
	}
	_ = os.Unsetenv(fsync.AgentEnv)
	if err := fsync.StartAgent(); err != nil {
		t.Errorf("StartAgent without %s = %v, want nil", fsync.AgentEnv, err)
	}
}
