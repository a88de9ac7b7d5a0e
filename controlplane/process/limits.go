package process

import (
	"fmt"
	"syscall"

	"golang.org/x/sys/unix"
)

// RaiseDescriptors raises the soft limit of open files to the hard one and
// gives it. Children inherit it: setting it explicitly also keeps Go from
// restoring the old soft limit in them.
func RaiseDescriptors() (uint64, error) {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return 0, fmt.Errorf("read the limit of open files: %w", err)
	}
	limit.Cur = limit.Max
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return 0, fmt.Errorf("raise the limit of open files: %w", err)
	}
	return uint64(limit.Cur), nil
}

// FreeBytes is the space that is left for this user where dir is.
func FreeBytes(dir string) (uint64, error) {
	var fs unix.Statfs_t
	if err := unix.Statfs(dir, &fs); err != nil {
		return 0, fmt.Errorf("free space of %s: %w", dir, err)
	}
	return fs.Bavail * uint64(fs.Bsize), nil
}
