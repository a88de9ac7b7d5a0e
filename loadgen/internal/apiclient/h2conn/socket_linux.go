package h2conn

import (
	"io"
	"net"
	"os"
	"syscall"
	"time"
	"unsafe"
)

// socket is a TCP connection whose system calls do not notify Go's scheduler. The calls never block, as the descriptor
// is non-blocking. The first system call that the scheduler notices after an idle period wakes the runtime's monitor
// thread (runtime/proc.go, entersyscall). That thread then checks about every 20 µs whether the call blocks. For an
// idle process that receives a few thousand small requests per second, these checks take a quarter of the CPU time.
//
// crypto/tls ensures that there is at most one reader and one writer at a time.
type socket struct {
	*net.TCPConn
	raw     syscall.RawConn
	in, out transfer
	arrivals
}

// most is the maximum number of bytes of a read or write system call. The garbage collector waits for the call, so the
// limit keeps this wait short.
const most = 64 << 10

// unscheduled turns a TCP connection into a socket. It returns other connections unchanged.
func unscheduled(nc net.Conn) net.Conn {
	tcp, ok := nc.(*net.TCPConn)
	if !ok {
		return nc
	}
	raw, err := tcp.SyscallConn()
	if err != nil {
		return nc // the connection is closed, and the first write reports that
	}
	s := &socket{TCPConn: tcp, raw: raw}
	s.in.call, s.in.step = s.read, s.in.try
	s.out.call, s.out.step, s.out.whole = write, s.out.try, true
	return s
}

// stampArrivals makes each read on nc store how long the last byte of the read had waited in the kernel. It returns a
// pointer to this duration, or nil if nc does not support arrival times.
func stampArrivals(nc net.Conn) (waited *time.Duration) {
	switch s := nc.(type) {
	case *socket:
		_ = s.raw.Control(s.stamp)
		return &s.waited
	case *unwatched:
		if s.Control(s.stamp) != nil || !s.on {
			return nil
		}
		return &s.waited
	}
	return nil
}

// Read implements net.Conn.
func (s *socket) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	n, err := s.in.run(p, s.raw.Read)
	switch {
	case err != nil:
		return 0, s.failed("read", err)
	case n == 0:
		return 0, io.EOF
	}
	return n, nil
}

// Write implements net.Conn.
func (s *socket) Write(p []byte) (int, error) {
	n, err := s.out.run(p, s.raw.Write)
	return n, s.failed("write", err)
}

func (s *socket) failed(op string, err error) error {
	if errno, ok := err.(syscall.Errno); ok {
		return &net.OpError{Op: op, Net: "tcp", Source: s.LocalAddr(), Addr: s.RemoteAddr(), Err: os.NewSyscallError(op, errno)}
	}
	return err // the runtime's error: deadline exceeded or connection closed
}

// transfer is the state of one read or write.
type transfer struct {
	p     []byte // bytes that remain to be transferred
	n     int    // number of bytes read or written
	errno syscall.Errno
	call  func(fd uintptr, p []byte) (uintptr, syscall.Errno) // performs one system call
	step  func(fd uintptr) bool                               // the method try; stored, to avoid a closure for each call
	whole bool                                                // whether to transfer all bytes, with several calls if needed
}

// run transfers p: it calls step each time the descriptor may be ready, until step returns true.
func (t *transfer) run(p []byte, ready func(func(fd uintptr) bool) error) (int, error) {
	t.p, t.n, t.errno = p, 0, 0
	err := ready(t.step)
	t.p = nil
	if err == nil && t.errno != 0 {
		err = t.errno
	}
	return t.n, err
}

// try performs system calls until the transfer has ended or failed. It returns false if the descriptor is not ready.
func (t *transfer) try(fd uintptr) bool {
	for len(t.p) > 0 {
		n, errno := t.call(fd, t.p)
		switch errno {
		case 0:
			t.n += int(n)
			t.p = t.p[n:]
			if !t.whole {
				return true
			}
		case syscall.EAGAIN:
			return false
		case syscall.EINTR:
		default:
			t.errno = errno
			return true
		}
	}
	return true
}

func (s *socket) read(fd uintptr, p []byte) (uintptr, syscall.Errno) {
	if s.on {
		return s.receive(fd, p, most)
	}
	return rawCall(syscall.SYS_READ, fd, p)
}

func write(fd uintptr, p []byte) (uintptr, syscall.Errno) { return rawCall(syscall.SYS_WRITE, fd, p) }

func rawCall(call, fd uintptr, p []byte) (uintptr, syscall.Errno) {
	if call == syscall.SYS_WRITE {
		rawWrite()
	}
	n, _, errno := syscall.RawSyscall(call, fd, uintptr(unsafe.Pointer(unsafe.SliceData(p))), uintptr(min(len(p), most)))
	if call == syscall.SYS_READ && errno == 0 {
		rawRead()
	}
	return n, errno
}
