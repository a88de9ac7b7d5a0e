package fault

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// SetLimit sets the soft value of a resource limit of a process and returns the previous value. The change is effective
// immediately. The hard value does not change, so that the previous soft value can be restored.
//
// Descriptors that are already open stay open, even if they exceed the limit. Calls that would open another descriptor
// fail with EMFILE. If accept fails, connections wait in the listener's queue until they time out. A write that would
// make a file larger than the limit fails with EFBIG, whereas it would fail with ENOSPC on a full disk.
func SetLimit(pid int, of Rlimit, soft uint64) (was uint64, err error) {
	resource := map[Rlimit]int{OpenFiles: unix.RLIMIT_NOFILE, FileSize: unix.RLIMIT_FSIZE}[of]
	var now unix.Rlimit
	if err := unix.Prlimit(pid, resource, nil, &now); err != nil {
		return 0, fmt.Errorf("read the limit of %s of process %d: %w", of, pid, err)
	}
	if soft > now.Max {
		return now.Cur, fmt.Errorf("the requested limit %d is greater than the hard limit of %s of process %d, which is %d", soft, of, pid, now.Max)
	}
	want := unix.Rlimit{Cur: soft, Max: now.Max}
	if err := unix.Prlimit(pid, resource, &want, nil); err != nil {
		return now.Cur, fmt.Errorf("set the limit of %s of process %d: %w", of, pid, err)
	}
	return now.Cur, nil
}

// limitsAvailable returns an error if SetLimit does not work on this system.
func limitsAvailable() error { return nil }
