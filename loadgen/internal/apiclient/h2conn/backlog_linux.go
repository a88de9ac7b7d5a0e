package h2conn

import (
	"net"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// backlog returns the number of received bytes in a socket that have not been read (SIOCINQ, tcp(7)). It returns 0 if
// nc is not a socket.
func backlog(nc net.Conn) int64 {
	q := newQueues(nc)
	return max(q.length(unix.SIOCINQ), 0)
}

// queues reads the lengths of a socket's kernel queues, in bytes. It is not safe for concurrent use.
type queues struct {
	raw     syscall.RawConn // nil if the connection is not a socket
	request uint
	answer  int64
	ask     func(fd uintptr) // performs the ioctl; stored, to avoid a closure for each call
}

func newQueues(nc net.Conn) *queues {
	q := &queues{}
	if s, ok := nc.(syscall.Conn); ok {
		q.raw, _ = s.SyscallConn() // nil on an error
	}
	q.ask = func(fd uintptr) {
		var n int32
		// Use a raw system call, which does not notify Go's scheduler (see socket).
		if _, _, errno := unix.RawSyscall(unix.SYS_IOCTL, fd, uintptr(q.request), uintptr(unsafe.Pointer(&n))); errno == 0 {
			q.answer = int64(n)
		}
	}
	return q
}

// length performs the ioctl `request` and returns the number of bytes in the queue. If the number is unknown, it
// returns a negative number.
func (q *queues) length(request uint) int64 {
	q.request, q.answer = request, -1
	if q.raw != nil {
		_ = q.raw.Control(q.ask) // a closed socket has no queue
	}
	return q.answer
}

// unsent returns the number of sent bytes that the peer has not acknowledged (SIOCOUTQ).
func (q *queues) unsent() int64 { return q.length(unix.SIOCOUTQ) }
