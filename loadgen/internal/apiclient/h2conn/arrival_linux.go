package h2conn

import (
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// arrivals reads from a socket and records how long the last byte of each read had waited in the kernel. It uses the
// kernel's timestamps (SO_TIMESTAMPNS, socket(7)).
type arrivals struct {
	on      bool
	waited  time.Duration // how long the last byte of the last read had waited; used by the read loop
	message unix.Msghdr
	piece   unix.Iovec
	control [64]byte
}

// stamp enables the kernel's arrival timestamps for a socket. If the kernel does not support them, a.on stays false.
func (a *arrivals) stamp(fd uintptr) {
	a.on = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_TIMESTAMPNS, 1) == nil
}

// receive reads at most `most` bytes into p with one system call. It stores in a.waited how long the last of these
// bytes had waited in the kernel.
func (a *arrivals) receive(fd uintptr, p []byte, most int) (n uintptr, errno syscall.Errno) {
	a.piece.Base = unsafe.SliceData(p)
	a.piece.SetLen(min(len(p), most))
	a.message = unix.Msghdr{Iov: &a.piece, Control: &a.control[0]}
	a.message.SetIovlen(1)
	a.message.SetControllen(len(a.control))
	n, _, errno = syscall.RawSyscall(unix.SYS_RECVMSG, fd, uintptr(unsafe.Pointer(&a.message)), 0)
	a.piece.Base = nil
	if errno != 0 {
		return n, errno
	}
	rawRead()
	if n > 0 {
		a.waited = sinceStamp(a.control[:a.message.Controllen], time.Now())
	}
	return n, errno
}

// sinceStamp returns the time from the timestamp in the socket's control messages to the time `now`. It returns 0 if
// there is no timestamp or the clock was set back.
func sinceStamp(control []byte, now time.Time) time.Duration {
	for len(control) >= unix.SizeofCmsghdr { // unix.ParseOneSocketControlMessage reads a whole header
		h, data, rest, err := unix.ParseOneSocketControlMessage(control)
		if err != nil {
			return 0
		}
		if h.Level == unix.SOL_SOCKET && h.Type == unix.SCM_TIMESTAMPNS && len(data) >= int(unsafe.Sizeof(unix.Timespec{})) {
			at := (*unix.Timespec)(unsafe.Pointer(&data[0]))
			return max(now.Sub(time.Unix(at.Unix())), 0)
		}
		control = rest
	}
	return 0
}
