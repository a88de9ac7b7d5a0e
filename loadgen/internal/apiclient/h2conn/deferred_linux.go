//go:build !race

package h2conn

import (
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// unwatched is a TCP connection that the runtime does not watch: what comes on it wakes nothing. Its reads wait only until deferReads, for the
// handshake. One reads at a time, and one writes: crypto/tls sees to it. It has no read deadline.
type unwatched struct {
	local, remote net.Addr
	deferred      atomic.Bool
	drained       bool // the last read took all there was; of the reader
	arrivals

	mu       sync.RWMutex
	fd       int // below 0: closed
	deadline time.Time
}

// deferReads makes a TCP connection an unwatched one; others stay what they are.
func deferReads(nc net.Conn) (net.Conn, deferral, error) {
	tcp, ok := nc.(*net.TCPConn)
	if !ok {
		return nc, nil, nil
	}
	defer tcp.Close() // the runtime forgets its descriptor
	raw, err := tcp.SyscallConn()
	if err != nil {
		return nil, nil, err
	}
	u := &unwatched{local: tcp.LocalAddr(), remote: tcp.RemoteAddr()}
	var failed error
	if err := raw.Control(func(fd uintptr) { u.fd, failed = unix.FcntlInt(fd, unix.F_DUPFD_CLOEXEC, 0) }); err != nil {
		return nil, nil, err
	}
	if failed != nil {
		return nil, nil, os.NewSyscallError("fcntl", failed)
	}
	return u, u, nil
}

func (u *unwatched) deferReads() { u.deferred.Store(true) }

// Read is net.Conn's.
func (u *unwatched) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	if u.drained && u.deferred.Load() {
		u.drained = false
		return 0, errNothing
	}
	for {
		n, errno := u.move(func(fd uintptr) (uintptr, syscall.Errno) { return u.receive(fd, p, most) })
		u.drained = errno == 0 && 0 < n && n < min(len(p), most)
		switch {
		case errno == 0 && n == 0:
			return 0, io.EOF
		case errno == 0:
			return n, nil
		case errno != syscall.EAGAIN:
			return 0, u.failed("read", errno)
		case u.deferred.Load():
			return 0, errNothing
		}
		u.await(unix.POLLIN, time.Second)
	}
}

// Write is net.Conn's.
func (u *unwatched) Write(p []byte) (written int, err error) {
	for written < len(p) {
		rest := p[written:]
		n, errno := u.move(func(fd uintptr) (uintptr, syscall.Errno) {
			n, _, errno := syscall.RawSyscall(syscall.SYS_WRITE, fd, uintptr(unsafe.Pointer(unsafe.SliceData(rest))), uintptr(min(len(rest), most)))
			return n, errno
		})
		switch errno {
		case 0:
			written += n
		case syscall.EAGAIN:
			u.mu.RLock()
			deadline := u.deadline
			u.mu.RUnlock()
			wait := 50 * time.Millisecond // Close waits for it
			if !deadline.IsZero() {
				if wait = min(wait, time.Until(deadline)); wait <= 0 {
					return written, &net.OpError{Op: "write", Net: "tcp", Source: u.local, Addr: u.remote, Err: os.ErrDeadlineExceeded}
				}
			}
			u.await(unix.POLLOUT, wait)
		default:
			return written, u.failed("write", errno)
		}
	}
	return written, nil
}

// move makes one system call with the descriptor.
func (u *unwatched) move(call func(fd uintptr) (uintptr, syscall.Errno)) (int, syscall.Errno) {
	u.mu.RLock()
	defer u.mu.RUnlock()
	if u.fd < 0 {
		return 0, syscall.EBADF
	}
	for {
		n, errno := call(uintptr(u.fd))
		if errno != syscall.EINTR {
			return int(n), errno
		}
	}
}

// await waits until the descriptor is ready, it is closed or the time is over.
func (u *unwatched) await(events int16, most time.Duration) {
	u.mu.RLock()
	defer u.mu.RUnlock()
	if u.fd >= 0 {
		_, _ = unix.Poll([]unix.PollFd{{Fd: int32(u.fd), Events: events}}, max(int(most.Milliseconds()), 1)) // the next call finds what is wrong
	}
}

func (u *unwatched) failed(op string, errno syscall.Errno) error {
	err := os.NewSyscallError(op, errno)
	if errno == syscall.EBADF {
		err = net.ErrClosed
	}
	return &net.OpError{Op: op, Net: "tcp", Source: u.local, Addr: u.remote, Err: err}
}

// Close is net.Conn's. It ends a wait.
func (u *unwatched) Close() error {
	_ = u.Control(func(fd uintptr) { _ = unix.Shutdown(int(fd), unix.SHUT_RD) }) // which sends nothing
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.fd < 0 {
		return u.failed("close", syscall.EBADF)
	}
	err := unix.Close(u.fd)
	u.fd = -1
	return err
}

// SetLinger is a TCPConn's.
func (u *unwatched) SetLinger(seconds int) (err error) {
	failed := u.Control(func(fd uintptr) {
		err = unix.SetsockoptLinger(int(fd), unix.SOL_SOCKET, unix.SO_LINGER, &unix.Linger{Onoff: 1, Linger: int32(seconds)})
	})
	return errors.Join(failed, err)
}

// SyscallConn is of syscall.Conn.
func (u *unwatched) SyscallConn() (syscall.RawConn, error) { return unwatchedRaw{u}, nil }

// Control calls f with the descriptor, unless it is closed.
func (u *unwatched) Control(f func(fd uintptr)) error {
	u.mu.RLock()
	defer u.mu.RUnlock()
	if u.fd < 0 {
		return net.ErrClosed
	}
	f(uintptr(u.fd))
	return nil
}

func (u *unwatched) LocalAddr() net.Addr  { return u.local }
func (u *unwatched) RemoteAddr() net.Addr { return u.remote }

// SetDeadline and SetReadDeadline are not supported.
func (u *unwatched) SetDeadline(time.Time) error     { return os.ErrNoDeadline }
func (u *unwatched) SetReadDeadline(time.Time) error { return os.ErrNoDeadline }

// SetWriteDeadline holds for writes that begin to wait after it.
func (u *unwatched) SetWriteDeadline(t time.Time) error {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.deadline = t
	return nil
}

// unwatchedRaw is a syscall.RawConn that does not wait.
type unwatchedRaw struct{ *unwatched }

func (unwatchedRaw) Read(func(fd uintptr) bool) error  { return errors.ErrUnsupported }
func (unwatchedRaw) Write(func(fd uintptr) bool) error { return errors.ErrUnsupported }
