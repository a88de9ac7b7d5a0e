package request

import (
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// alarm ends the wait of an idle process on time. Go rounds such waits up to
// a millisecond (runtime/netpoll_epoll.go: epoll_wait counts in them). A timerfd
// among the descriptors that the runtime waits for ends its wait when the
// timer is due. It costs a system call to set, and no thread, unlike a sleep
// in a system call of our own; where the runtime is not idle, the timer is on
// time without it.
type alarm struct {
	file  *os.File
	raw   syscall.RawConn
	after unix.ItimerSpec
	arm   func(fd uintptr) // kept: no closure for each setting
}

// newAlarm makes an alarm; one that cannot be had does nothing.
func newAlarm() *alarm {
	fd, err := unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_NONBLOCK|unix.TFD_CLOEXEC)
	if err != nil {
		return &alarm{}
	}
	a := &alarm{file: os.NewFile(uintptr(fd), "timerfd")} // non-blocking: the runtime's poller takes it
	if a.raw, err = a.file.SyscallConn(); err != nil {
		a.file.Close()
		return &alarm{}
	}
	a.arm = func(fd uintptr) {
		_ = unix.TimerfdSettime(int(fd), 0, &a.after, nil) // without it we are a millisecond late
	}
	return a
}

// set lets the alarm go off after d.
func (a *alarm) set(d time.Duration) {
	if a.raw == nil {
		return
	}
	a.after.Value = unix.NsecToTimespec(int64(max(d, 1)))
	_ = a.raw.Control(a.arm)
}

func (a *alarm) close() {
	if a.file != nil {
		a.file.Close()
	}
}
