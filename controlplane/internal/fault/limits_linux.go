package fault

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// LimitDescriptors sets a process's soft limit of open files, at once, and
// gives the one that it had. The hard limit stays, so that the soft one can be
// put back. Descriptors that are open beyond the limit stay open; what would
// make one more fails with EMFILE: accept, so that connections wait in the
// listener's queue and then time out, and open.
func LimitDescriptors(pid int, soft uint64) (was uint64, err error) {
	var now unix.Rlimit
	if err := unix.Prlimit(pid, unix.RLIMIT_NOFILE, nil, &now); err != nil {
		return 0, fmt.Errorf("read the limit of open files of process %d: %w", pid, err)
	}
	if soft > now.Max {
		return now.Cur, fmt.Errorf("limit %d is over the hard limit of open files of process %d, %d", soft, pid, now.Max)
	}
	want := unix.Rlimit{Cur: soft, Max: now.Max}
	if err := unix.Prlimit(pid, unix.RLIMIT_NOFILE, &want, nil); err != nil {
		return now.Cur, fmt.Errorf("set the limit of open files of process %d: %w", pid, err)
	}
	return now.Cur, nil
}

// descriptorsAvailable reports whether LimitDescriptors works here.
func descriptorsAvailable() error { return nil }
