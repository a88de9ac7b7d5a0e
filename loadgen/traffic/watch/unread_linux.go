package watch

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// unread is what the kernel has received for a socket and nobody has read
// (SIOCINQ, tcp(7)).
func unread(s syscall.Conn) int64 {
	raw, err := s.SyscallConn()
	if err != nil {
		return 0
	}
	n := 0
	_ = raw.Control(func(fd uintptr) { // a closed socket has no backlog
		if n, err = unix.IoctlGetInt(int(fd), unix.SIOCINQ); err != nil {
			n = 0
		}
	})
	return int64(n)
}
