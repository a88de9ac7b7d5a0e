package h2conn

import (
	"errors"
	"io"
	"net"
	"os"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// unwatched is a TCP connection that Go's runtime does not poll, so incoming data wakes no goroutine. Until deferReads
// is called, a read waits for data, because the TLS handshake requires this. Afterwards, if no data has arrived, a read
// fails with errNothing.
type unwatched struct {
	descriptor
	deferred atomic.Bool
	drained  bool // whether the last read emptied the socket; used by the reader
	arrivals
}

// deferReads turns a TCP connection into an unwatched connection. It returns other connections unchanged.
func deferReads(nc net.Conn) (net.Conn, deferral, error) {
	tcp, ok := nc.(*net.TCPConn)
	if !ok {
		return nc, nil, nil
	}
	u := &unwatched{}
	if err := u.takeOver(tcp); err != nil {
		return nil, nil, err
	}
	return u, u, nil
}

func (u *unwatched) deferReads() { u.deferred.Store(true) }

// Read implements net.Conn.
func (u *unwatched) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	if u.drained && u.deferred.Load() {
		u.drained = false
		return 0, errNothing
	}
	for {
		n, errno := u.call(func(fd uintptr) (uintptr, syscall.Errno) { return u.receive(fd, p, most) })
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

// Write implements net.Conn.
func (u *unwatched) Write(p []byte) (int, error) { return u.write(p, u.awaitWritable) }

func (u *unwatched) awaitWritable(deadline time.Time) error {
	wait := 50 * time.Millisecond // short, because Close waits until it has passed
	if !deadline.IsZero() {
		if wait = min(wait, time.Until(deadline)); wait <= 0 {
			return os.ErrDeadlineExceeded
		}
	}
	u.await(unix.POLLOUT, wait)
	return nil
}

// await waits until the descriptor is ready or closed, or the duration `most` has passed.
func (u *unwatched) await(events int16, most time.Duration) {
	u.mu.RLock()
	defer u.mu.RUnlock()
	if u.fd >= 0 {
		_, _ = unix.Poll([]unix.PollFd{{Fd: int32(u.fd), Events: events}}, max(int(most.Milliseconds()), 1)) // the next system call reports any error
	}
}

// Close implements net.Conn. It also ends a read that waits for data.
func (u *unwatched) Close() error {
	_ = u.Control(func(fd uintptr) { _ = unix.Shutdown(int(fd), unix.SHUT_RD) }) // sends nothing to the peer
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.close()
}

// SyscallConn implements syscall.Conn.
func (u *unwatched) SyscallConn() (syscall.RawConn, error) { return unwatchedRaw{u}, nil }

// Control calls f with the descriptor. It fails if the connection is closed.
func (u *unwatched) Control(f func(fd uintptr)) error {
	u.mu.RLock()
	defer u.mu.RUnlock()
	if u.fd < 0 {
		return net.ErrClosed
	}
	f(uintptr(u.fd))
	return nil
}

// unwatchedRaw is a syscall.RawConn that supports only Control.
type unwatchedRaw struct{ *unwatched }

func (unwatchedRaw) Read(func(fd uintptr) bool) error  { return errors.ErrUnsupported }
func (unwatchedRaw) Write(func(fd uintptr) bool) error { return errors.ErrUnsupported }
