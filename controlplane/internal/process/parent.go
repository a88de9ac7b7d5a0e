package process

import (
	"fmt"
	"os"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/stormglass/stormglass/controlplane/control"
)

// DieWithParent makes this process kill itself by SIGKILL as soon as its parent has ended, if the parent has set
// control.ParentPipeEnv. Call it once, at the beginning of main.
//
// The process does not shut down gracefully, because it must end before another supervisor starts new processes in the
// plane's directory.
func DieWithParent() error {
	number, ok, err := TakeNumber(control.ParentPipeEnv, "not a descriptor")
	if err != nil || !ok {
		return err
	}
	fd := int(number)
	// Do not pass on inherited descriptors: no child of this process may inherit the pipe or the lock of the directory
	// (see Spec.Hold).
	unix.CloseOnExec(fd)
	if _, err := unix.FcntlInt(holdFD, unix.F_GETFD, 0); err == nil {
		unix.CloseOnExec(holdFD)
	}
	pipe := os.NewFile(uintptr(fd), "parent pipe")
	go func() {
		// The parent never writes, so the read returns when the last write end closes.
		_, _ = pipe.Read(make([]byte, 1))
		_ = unix.Kill(os.Getpid(), unix.SIGKILL)
	}()
	return nil
}

// TakeNumber reads a number from an environment variable that the parent has set, and unsets the variable. ok is false
// if the variable is not set. If the value is not a number, the error is "VARIABLE=VALUE is " followed by `wrong`.
func TakeNumber(env, wrong string) (n uint64, ok bool, err error) {
	text, ok := os.LookupEnv(env)
	if !ok {
		return 0, false, nil
	}
	if n, err = strconv.ParseUint(text, 10, 64); err != nil {
		return 0, true, fmt.Errorf("%s=%q is %s", env, text, wrong)
	}
	return n, true, os.Unsetenv(env)
}

// RaiseDescriptors raises the soft limit of open files to the hard limit, or to the system's maximum if the hard limit
// is unlimited, and returns the new limit. Children inherit the limit: because it is set explicitly, Go does not
// restore the old soft limit in children.
func RaiseDescriptors() (uint64, error) {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return 0, fmt.Errorf("read the limit of open files: %w", err)
	}
	limit.Cur = min(limit.Max, descriptorCeiling())
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return 0, fmt.Errorf("cannot raise the limit of open files: %w", err)
	}
	return uint64(limit.Cur), nil
}

// descriptorsEnv is the environment variable that holds a child's limit of open files.
const descriptorsEnv = "STORMGLASS_DESCRIPTORS"

// LimitDescriptors sets this process's soft limit of open files to the value that the parent has requested
// (Spec.Descriptors), if any. Call it at the beginning of main. The parent cannot set the limit itself, because Go
// raises the soft limit of every process to the hard limit when the process starts. The hard limit does not change.
func LimitDescriptors() error {
	soft, ok, err := TakeNumber(descriptorsEnv, "not a number of descriptors")
	if err != nil || !ok {
		return err
	}
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return fmt.Errorf("read the limit of open files: %w", err)
	}
	limit.Cur = soft
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return fmt.Errorf("set the limit of open files to %d: %w", soft, err)
	}
	return nil
}

// FreeBytes returns the number of bytes that this user can still use on the file system of dir.
func FreeBytes(dir string) (uint64, error) {
	var fs unix.Statfs_t
	if err := unix.Statfs(dir, &fs); err != nil {
		return 0, fmt.Errorf("read the free space of %s: %w", dir, err)
	}
	return fs.Bavail * uint64(fs.Bsize), nil
}
