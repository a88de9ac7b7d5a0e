package h2conn

import (
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Poller wakes the readers of many connections together. Go's own poller wakes an idle process for each response, which
// costs more than reading the response does. While data keeps arriving, a Poller checks for it only once per interval.
// When no data arrives, the Poller waits until there is some.
//
// The sockets are in an epoll set that the runtime does not watch. This set is in a second epoll set, which the runtime
// watches. The second set reports the first one only once each time it is armed (EPOLLONESHOT).
type Poller struct {
	every   time.Duration
	sockets int
	gate    *os.File
	ended   chan struct{}

	mu sync.Mutex
	of map[int32]*polled // the connections in the poller, by file descriptor
}

// NewPoller returns a poller that checks its connections at most once per interval. Close the connections before the
// poller.
func NewPoller(every time.Duration) (*Poller, error) {
	p := &Poller{every: every, ended: make(chan struct{}), of: map[int32]*polled{}}
	var err error
	if p.sockets, err = unix.EpollCreate1(unix.EPOLL_CLOEXEC); err != nil {
		return nil, fmt.Errorf("epoll_create: %w", err)
	}
	gate, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err == nil {
		err = unix.SetNonblock(gate, true) // the runtime can watch only a non-blocking descriptor
		p.gate = os.NewFile(uintptr(gate), "poller")
	}
	var raw syscall.RawConn
	if err == nil {
		raw, err = p.gate.SyscallConn()
	}
	if err == nil {
		err = unix.EpollCtl(gate, unix.EPOLL_CTL_ADD, p.sockets, &once)
	}
	if err != nil {
		unix.Close(p.sockets)
		if p.gate != nil {
			p.gate.Close()
		}
		return nil, fmt.Errorf("epoll: %w", err)
	}
	go p.run(raw)
	return p, nil
}

// once is the event that the second epoll set (see Poller) reports about the set of sockets.
var once = unix.EpollEvent{Events: unix.EPOLLIN | unix.EPOLLONESHOT}

// Close ends the poller. Close its connections first, because a read on an open connection would never return.
func (p *Poller) Close() {
	p.gate.Close()
	<-p.ended
}

func (p *Poller) run(gate syscall.RawConn) {
	defer close(p.ended)
	defer unix.Close(p.sockets)
	events := make([]unix.EpollEvent, 256)
	opened := func(fd uintptr) bool { return ready(int(fd), events[:1]) != 0 }
	for gate.Read(opened) == nil {
		for n := p.look(events); n > 0; n = p.look(events) {
			if n < len(events) { // if events is full, more connections may be ready
				time.Sleep(p.every)
			}
		}
		rearmed := gate.Control(func(fd uintptr) {
			interest := once
			_ = unix.EpollCtl(int(fd), unix.EPOLL_CTL_MOD, p.sockets, &interest) // cannot fail: both descriptors are open
		})
		if rearmed != nil {
			return
		}
	}
}

// look finds the connections that are ready now, and wakes the goroutines that wait for them. It returns the number of
// ready connections, or -1 on an error.
func (p *Poller) look(events []unix.EpollEvent) (n int) {
	n = ready(p.sockets, events)
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := range events[:max(n, 0)] {
		e := &events[i]
		s := p.of[e.Fd]
		if s == nil {
			continue // the connection was closed
		}
		if e.Events&^unix.EPOLLOUT != 0 {
			signal(s.readable)
		}
		if e.Events&^unix.EPOLLIN != 0 {
			signal(s.writable)
		}
	}
	return n
}

// ready returns the number of descriptors of an epoll set that are ready. It does not wait, and does not notify Go's
// scheduler (see socket).
func ready(set int, events []unix.EpollEvent) int {
	for {
		n, _, errno := syscall.RawSyscall6(unix.SYS_EPOLL_PWAIT, uintptr(set), uintptr(unsafe.Pointer(unsafe.SliceData(events))), uintptr(len(events)), 0, 0, 0)
		switch errno {
		case 0:
			return int(n)
		case syscall.EINTR:
		default:
			return -1
		}
	}
}

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// add adds a TCP connection to the poller. It returns other connections unchanged.
func (p *Poller) add(nc net.Conn) (net.Conn, error) {
	tcp, ok := nc.(*net.TCPConn)
	if !ok {
		return nc, nil
	}
	s := &polled{poller: p, readable: make(chan struct{}, 1), writable: make(chan struct{}, 1), closed: make(chan struct{})}
	if err := s.takeOver(tcp); err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.of[int32(s.fd)] = s
	err := unix.EpollCtl(p.sockets, unix.EPOLL_CTL_ADD, s.fd, &unix.EpollEvent{
		Events: unix.EPOLLIN | unix.EPOLLOUT | unix.EPOLLRDHUP | unix.EPOLLET&(1<<32-1), Fd: int32(s.fd),
	})
	if err != nil {
		delete(p.of, int32(s.fd))
		unix.Close(s.fd)
		return nil, os.NewSyscallError("epoll_ctl", err)
	}
	return s, nil
}

// polled is a TCP connection. A Poller wakes its reads and writes when they can continue.
type polled struct {
	descriptor
	poller             *Poller
	readable, writable chan struct{}
	closed             chan struct{}
}

// Read implements net.Conn.
func (s *polled) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	for {
		n, errno := s.move(syscall.SYS_READ, p)
		switch {
		case errno == 0 && n == 0:
			return 0, io.EOF
		case errno == 0:
			return n, nil
		case errno != syscall.EAGAIN:
			return 0, s.failed("read", errno)
		}
		select {
		case <-s.readable:
		case <-s.closed:
		}
	}
}

// Write implements net.Conn.
func (s *polled) Write(p []byte) (int, error) { return s.write(p, s.awaitWritable) }

func (s *polled) awaitWritable(deadline time.Time) error {
	var late <-chan time.Time
	if !deadline.IsZero() {
		t := time.NewTimer(time.Until(deadline))
		defer t.Stop()
		late = t.C
	}
	select {
	case <-s.writable:
	case <-s.closed:
	case <-late:
		return os.ErrDeadlineExceeded
	}
	return nil
}

// Close implements net.Conn.
func (s *polled) Close() error {
	s.poller.mu.Lock()
	defer s.poller.mu.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fd >= 0 {
		delete(s.poller.of, int32(s.fd))
		defer close(s.closed)
	}
	return s.close()
}
