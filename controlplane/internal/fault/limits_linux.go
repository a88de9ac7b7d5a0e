package fault

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// SetLimit sets a process's soft limit, effective immediately, and returns the earlier one. The hard
// limit stays, so that the soft one can be put back.
//
// Descriptors that are open beyond a limit stay open. A call that would open one more fails with EMFILE: open, and
// accept, so that connections wait in the listener's queue and then time out. A write that would make a file larger
// than a limit fails with EFBIG; on a full disk it would fail with ENOSPC.
func SetLimit(pid int, of Rlimit, soft uint64) (was uint64, err error) {
	resource := map[Rlimit]int{OpenFiles: unix.RLIMIT_NOFILE, FileSize: unix.RLIMIT_FSIZE}[of]
	var now unix.Rlimit
	if err := unix.Prlimit(pid, resource, nil, &now); err != nil {
		return 0, fmt.Errorf("read the limit of %s of process %d: %w", of, pid, err)
	}
	if soft > now.Max {
		return now.Cur, fmt.Errorf("limit %d is greater than the hard limit of %s of process %d, %d", soft, of, pid, now.Max)
	}
	want := unix.Rlimit{Cur: soft, Max: now.Max}
	if err := unix.Prlimit(pid, resource, &want, nil); err != nil {
		return now.Cur, fmt.Errorf("set the limit of %s of process %d: %w", of, pid, err)
	}
	return now.Cur, nil
}

// limitsAvailable reports whether SetLimit works here.
func limitsAvailable() error { return nil }
