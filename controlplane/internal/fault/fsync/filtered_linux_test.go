package fsync_test

import (
	"runtime"
	"strings"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/stormglass/stormglass/controlplane/internal/fault/fsync"
)

// filteredEnv makes the child install a separate filter on one thread.
const filteredEnv = "FSYNC_TEST_FILTERED"

// filterOneThread installs, on a thread that does not end, a filter that allows all calls.
func filterOneThread() error {
	result := make(chan error)
	go func() {
		runtime.LockOSThread()
		allow := unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW}
		program := unix.SockFprog{Len: 1, Filter: &allow}
		err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
		if err == nil {
			err = unix.Prctl(unix.PR_SET_SECCOMP, unix.SECCOMP_MODE_FILTER, uintptr(unsafe.Pointer(&program)), 0, 0)
		}
		result <- err
		select {}
	}()
	return <-result
}

// If a thread has its own seccomp filter, the kernel reports "no such process" (ESRCH). Set must return a clearer
// error.
func TestThreadWithOwnSeccompFilterIsReported(t *testing.T) {
	c := startChild(t, filteredEnv+"=1")
	err := c.agent.Set(t.Context(), fsync.Delay{Delay: time.Millisecond})
	if err == nil || !strings.Contains(err.Error(), "the threads of this process have different seccomp filters") {
		t.Errorf("Set = %v, want an error about different filters", err)
	}
}
