package fsync

import (
	"errors"
	"fmt"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Available returns nil if this machine can delay fsync. Otherwise it returns an error that wraps ErrUnavailable and
// says what is missing.
func Available() error {
	if _, ok := auditArch(); !ok {
		return fmt.Errorf("%w: on Linux it requires amd64 or arm64, but this machine is %s", ErrUnavailable, runtime.GOARCH)
	}
	result := make(chan error)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		// Install a filter that allows all calls, with TSYNC_ESRCH, the newest kernel feature that Set needs.
		fd, err := install([]unix.SockFilter{allow}, unix.SECCOMP_FILTER_FLAG_TSYNC_ESRCH)
		if err == nil {
			unix.Close(fd)
		}
		result <- err
	}()
	if err := <-result; err != nil {
		return fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	return nil
}

func auditArch() (arch uint32, ok bool) {
	switch runtime.GOARCH {
	case "amd64":
		return unix.AUDIT_ARCH_X86_64, true
	case "arm64":
		return unix.AUDIT_ARCH_AARCH64, true
	}
	return 0, false
}

var (
	allow  = unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW}
	notify = unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_USER_NOTIF}
)

// syncFilter returns a seccomp filter that passes fsync and fdatasync to the listener and allows all other calls.
func syncFilter(arch uint32) []unix.SockFilter {
	// struct seccomp_data begins with the call's number and the architecture.
	load := func(offset uint32) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: offset}
	}
	equal := func(k uint32, yes, no uint8) unix.SockFilter { // skips `yes` instructions if the loaded value is k, otherwise `no`
		return unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: k, Jt: yes, Jf: no}
	}
	return []unix.SockFilter{
		load(4),
		equal(arch, 0, 3),
		load(0),
		equal(unix.SYS_FDATASYNC, 2, 0),
		equal(unix.SYS_FSYNC, 1, 0),
		allow,
		notify,
	}
}

// install installs a filter and returns the listener for its notifications. The filter applies to the current thread,
// which must be locked to its goroutine, or with SECCOMP_FILTER_FLAG_TSYNC to all threads of the process.
func install(filter []unix.SockFilter, flags uintptr) (listener int, err error) {
	// Without privileges, the kernel accepts a filter only from threads that can never gain privileges.
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return -1, fmt.Errorf("no_new_privs: %w", err)
	}
	program := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	flags |= unix.SECCOMP_FILTER_FLAG_NEW_LISTENER
	// With WAIT_KILLABLE_RECV (Linux 5.19) a signal does not interrupt a delayed call.
	// An older kernel restarts such a call, whose delay then begins again.
	for _, more := range []uintptr{unix.SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV, 0} {
		fd, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, flags|more, uintptr(unsafe.Pointer(&program)))
		switch {
		case errno == 0:
			return int(fd), nil
		case errno == unix.EINVAL && more != 0:
			continue
		case errno == unix.EBUSY:
			return -1, errors.New("another seccomp filter with a listener is installed, for example by a container sandbox; the kernel allows only one")
		case errno == unix.ESRCH: // TSYNC failed; without TSYNC_ESRCH the kernel would return a thread's ID
			return -1, errors.New("the threads of this process have different seccomp filters, so the kernel cannot add a filter to all of them")
		case errno == unix.ENOSYS || errno == unix.EINVAL:
			return -1, fmt.Errorf("the kernel does not support seccomp user notification, which requires Linux 5.7 or later: %w", errno)
		default:
			return -1, fmt.Errorf("seccomp: %w", errno)
		}
	}
	panic("unreachable")
}

// notification is the kernel's struct seccomp_notif.
type notification struct {
	id    uint64
	pid   uint32
	flags uint32
	nr    int32
	arch  uint32
	ip    uint64
	args  [6]uint64
}

// answer is the kernel's struct seccomp_notif_resp.
type answer struct {
	id    uint64
	val   int64
	error int32
	flags uint32
}

func receive(listener int) (notification, error) {
	for {
		var n notification // the kernel requires a struct of zeros
		_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(listener), unix.SECCOMP_IOCTL_NOTIF_RECV, uintptr(unsafe.Pointer(&n)))
		switch errno {
		case 0:
			return n, nil
		case unix.EINTR, unix.ENOENT: // ENOENT: the calling thread was killed or interrupted before the notification was received
		default:
			return n, errno
		}
	}
}

func proceed(listener int, id uint64) {
	a := answer{id: id, flags: unix.SECCOMP_USER_NOTIF_FLAG_CONTINUE}
	for {
		_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(listener), unix.SECCOMP_IOCTL_NOTIF_SEND, uintptr(unsafe.Pointer(&a)))
		if errno != unix.EINTR {
			return
		}
	}
}
