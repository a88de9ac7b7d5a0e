// Package wakeup ends the waits of a goroutine on time also in an idle process.
package wakeup

import (
	"os"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Wakeup is a timerfd that the runtime waits for as it does for sockets. Waiting
// for it alone is both cheaper and more exact than a timer of Go's:
//
//   - Setting a Go timer that is due first breaks the wait of the thread that
//     polls the network, and when it is due another thread is woken besides the
//     one that runs it. Here the polling thread runs the waiting goroutine itself.
//   - Go rounds the waits of an idle process up to a millisecond
//     (runtime/netpoll_epoll.go: epoll_wait counts in them).
//   - The runtime's monitor, which sleeps until the next Go timer is due, is not
//     woken at all.
//
// Where a goroutine must select, on a Go timer, a wakeup set for the same time
// still ends an idle process' wait on time. One goroutine waits.
type Wakeup struct {
	file *os.File
	raw  syscall.RawConn // nil: no timerfd

	state atomic.Int32 // awake, asleep or rung

	// The waiting goroutine's.
	start   time.Time
	until   time.Duration
	failure error // to set the timer
	after   unix.ItimerSpec
	arm     func(fd uintptr)      // these are kept: no closure for each sleep
	settle  func(fd uintptr) bool // of wait
}

// States of a wakeup. A ring is never lost: it resets the timer of a sleeping goroutine, and keeps one that is
// awake from falling asleep.
const (
	awake int32 = iota
	asleep
	rung // and not yet heard
)

// New makes a wakeup that does nothing where there is no timerfd, or where time.Now is not the machine's
// clock, as in testing/synctest.
func New() *Wakeup {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_REALTIME, &now); err != nil || time.Since(time.Unix(now.Unix())).Abs() > time.Hour {
		return &Wakeup{}
	}
	fd, err := unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_NONBLOCK|unix.TFD_CLOEXEC)
	if err != nil {
		return &Wakeup{}
	}
	a := &Wakeup{file: os.NewFile(uintptr(fd), "timerfd")} // non-blocking: the runtime's poller takes it
	if a.raw, err = a.file.SyscallConn(); err != nil {
		a.file.Close()
		return &Wakeup{}
	}
	a.arm, a.settle = a.armed, a.settled
	return a
}

// Wait returns when until has passed since start, or on a ring. False: it cannot tell.
func (a *Wakeup) Wait(start time.Time, until time.Duration) bool {
	if a.raw == nil {
		return false
	}
	a.start, a.until = start, until
	err := a.raw.Read(a.settle)
	a.state.Store(awake) // a ring before this is answered by our waking
	return err == nil && a.failure == nil
}

// The runtime calls settled before it waits for the descriptor and whenever it is ready. Setting the timer again
// resets its count, which is never read: the runtime's epoll is edge-triggered.
func (a *Wakeup) settled(fd uintptr) bool {
	a.state.CompareAndSwap(asleep, awake)
	wait := a.until - time.Since(a.start)
	if wait <= 0 || a.state.Load() == rung {
		return true
	}
	a.after.Value = unix.NsecToTimespec(int64(wait))
	if a.failure = unix.TimerfdSettime(int(fd), 0, &a.after, nil); a.failure != nil {
		return true // nothing would wake us
	}
	return !a.state.CompareAndSwap(awake, asleep)
}

// Ring ends the wait under way, or the next one at once. It is safe for concurrent use.
func (a *Wakeup) Ring() {
	if a.raw != nil && a.state.Swap(rung) == asleep {
		_ = a.raw.Control(ringNow) // an error means closed: no wait is under way
	}
}

// ringNow sets the timer to go off at once.
func ringNow(fd uintptr) {
	_ = unix.TimerfdSettime(int(fd), 0, &unix.ItimerSpec{Value: unix.Timespec{Nsec: 1}}, nil)
}

// Set wakes an idle process after d, in addition to a Go timer of the same length.
func (a *Wakeup) Set(d time.Duration) {
	if a.raw == nil {
		return
	}
	a.after.Value = unix.NsecToTimespec(int64(max(d, 1)))
	_ = a.raw.Control(a.arm)
}

func (a *Wakeup) armed(fd uintptr) {
	_ = unix.TimerfdSettime(int(fd), 0, &a.after, nil) // without it we are a millisecond late
}

// Close comes after the last wait.
func (a *Wakeup) Close() {
	if a.file != nil {
		a.file.Close()
	}
}
