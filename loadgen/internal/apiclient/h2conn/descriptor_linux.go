package h2conn

import (
	"net"
	"os"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// descriptor is a TCP connection that the runtime's poller does not watch. The types that embed descriptor define how
// reads and writes wait. crypto/tls ensures that there is at most one reader and one writer at a time. A descriptor
// supports no read deadline.
type descriptor struct {
	local, remote net.Addr

	mu       sync.RWMutex
	fd       int // file descriptor; negative if closed
	deadline time.Time
}

// takeOver duplicates the file descriptor of a connection into d, and closes the connection.
func (d *descriptor) takeOver(tcp *net.TCPConn) error {
	defer tcp.Close() // removes the descriptor from the runtime's poller
	raw, err := tcp.SyscallConn()
	if err != nil {
		return err
	}
	d.local, d.remote = tcp.LocalAddr(), tcp.RemoteAddr()
	var failed error
	if err := raw.Control(func(fd uintptr) { d.fd, failed = unix.FcntlInt(fd, unix.F_DUPFD_CLOEXEC, 0) }); err != nil {
		return err
	}
	if failed != nil {
		return os.NewSyscallError("fcntl", failed)
	}
	return nil
}

func (d *descriptor) call(call func(fd uintptr) (uintptr, syscall.Errno)) (int, syscall.Errno) {
	d.mu.RLock()
	defer d.mu.RUnlock()
	if d.fd < 0 {
		return 0, syscall.EBADF
	}
	for {
		n, errno := call(uintptr(d.fd))
		if errno != syscall.EINTR {
			return int(n), errno
		}
	}
}

// move performs one system call on the bytes p, without waiting. number is SYS_READ or SYS_WRITE.
func (d *descriptor) move(number uintptr, p []byte) (int, syscall.Errno) {
	return d.call(func(fd uintptr) (uintptr, syscall.Errno) {
		return rawCall(number, fd, p)
	})
}

// write writes all of p. When the socket is full, it calls await, which must wait until more can be written or the
// deadline passes. A zero deadline means no limit.
func (d *descriptor) write(p []byte, await func(deadline time.Time) error) (written int, err error) {
	for written < len(p) {
		n, errno := d.move(syscall.SYS_WRITE, p[written:])
		switch errno {
		case 0:
			written += n
		case syscall.EAGAIN:
			d.mu.RLock()
			deadline := d.deadline
			d.mu.RUnlock()
			if err := await(deadline); err != nil {
				return written, d.wrong("write", err)
			}
		default:
			return written, d.failed("write", errno)
		}
	}
	return written, nil
}

func (d *descriptor) failed(op string, errno syscall.Errno) error {
	if errno == syscall.EBADF {
		return d.wrong(op, net.ErrClosed)
	}
	return d.wrong(op, os.NewSyscallError(op, errno))
}

func (d *descriptor) wrong(op string, err error) error {
	return &net.OpError{Op: op, Net: "tcp", Source: d.local, Addr: d.remote, Err: err}
}

// close closes the descriptor. The caller holds mu.
func (d *descriptor) close() error {
	if d.fd < 0 {
		return d.failed("close", syscall.EBADF)
	}
	err := unix.Close(d.fd)
	d.fd = -1
	return err
}

// SetLinger works like net.TCPConn.SetLinger.
func (d *descriptor) SetLinger(seconds int) error {
	d.mu.RLock()
	defer d.mu.RUnlock()
	if d.fd < 0 {
		return d.failed("set linger", syscall.EBADF)
	}
	return unix.SetsockoptLinger(d.fd, unix.SOL_SOCKET, unix.SO_LINGER, &unix.Linger{Onoff: 1, Linger: int32(seconds)})
}

func (d *descriptor) LocalAddr() net.Addr  { return d.local }
func (d *descriptor) RemoteAddr() net.Addr { return d.remote }

// SetDeadline and SetReadDeadline return os.ErrNoDeadline, because only write deadlines are supported.
func (d *descriptor) SetDeadline(time.Time) error     { return os.ErrNoDeadline }
func (d *descriptor) SetReadDeadline(time.Time) error { return os.ErrNoDeadline }

// SetWriteDeadline sets the deadline for writes. A wait in progress keeps the old deadline.
func (d *descriptor) SetWriteDeadline(t time.Time) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.deadline = t
	return nil
}
