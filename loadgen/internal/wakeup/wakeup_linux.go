// Package wakeup ends the waits of a goroutine on time, even in an idle process.
package wakeup

import (
	"os"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Wakeup ends the waits of one goroutine with a timerfd, for which the runtime waits as it does for sockets. Waiting
// only for the timerfd is both cheaper and more exact than a Go timer:
//
//   - Setting a Go timer interrupts the thread that polls the network, unless
//     another timer is due earlier. When the timer is due, the runtime wakes another
//     thread in addition to the thread that runs the timer. With a timerfd, the
//     polling thread runs the waiting goroutine itself.
//   - In an idle process, Go rounds waits up to a millisecond, the unit of
//     epoll_wait (runtime/netpoll_epoll.go).
//   - The runtime's monitor, which sleeps until the next Go timer is due, is not
//     woken at all.
//
// A goroutine that must select on a Go timer also calls Set with the duration of the timer. The timer then fires on time
// even in an idle process. Only one goroutine may wait.
type Wakeup struct {
	file *os.File
	raw  syscall.RawConn // nil if there is no timerfd

	state atomic.Int32 // awake, asleep or rung

	// Only the waiting goroutine uses the fields below.
	start   time.Time
	until   time.Duration
	failure error // error of setting the timer
	after   unix.ItimerSpec
	arm     func(fd uintptr)      // method values, kept to avoid a new closure for each wait
	settle  func(fd uintptr) bool // of wait
}

// States of a Wakeup. A call of Ring is never lost: it fires the timer of a sleeping goroutine, and prevents a goroutine
// that is awake from falling asleep.
const (
	awake int32 = iota
	asleep
	rung // but the ring has not ended a wait yet
)

// New returns a Wakeup. If there is no timerfd, or if time.Now is not the machine's clock (as in testing/synctest), the
// Wakeup does nothing.
func New() *Wakeup {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_REALTIME, &now); err != nil || time.Since(time.Unix(now.Unix())).Abs() > time.Hour {
		return &Wakeup{}
	}
	fd, err := unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_NONBLOCK|unix.TFD_CLOEXEC)
	if err != nil {
		return &Wakeup{}
	}
	a := &Wakeup{file: os.NewFile(uintptr(fd), "timerfd")} // non-blocking, so the runtime's poller handles it
	if a.raw, err = a.file.SyscallConn(); err != nil {
		a.file.Close()
		return &Wakeup{}
	}
	a.arm, a.settle = a.armed, a.settled
	return a
}

// Wait waits until the duration until has passed since start, or until Ring is called, and returns true. It returns
// false if it cannot wait, for example without a timerfd.
func (a *Wakeup) Wait(start time.Time, until time.Duration) bool {
	if a.raw == nil {
		return false
	}
	a.start, a.until = start, until
	err := a.raw.Read(a.settle)
	a.state.Store(awake) // we are awake, so earlier rings are done
	return err == nil && a.failure == nil
}

// settled sets the timer and reports whether the wait is over. The runtime calls it before it waits for the descriptor,
// and whenever the descriptor is ready. Setting the timer again resets the timer's count. The count is never read,
// because the runtime's epoll is edge-triggered.
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

// Ring ends the current wait. If no goroutine waits, the next call of Wait returns at once. Ring is safe for concurrent
// use.
func (a *Wakeup) Ring() {
	if a.raw != nil && a.state.Swap(rung) == asleep {
		_ = a.raw.Control(ringNow) // an error means that the file is closed, so nothing waits
	}
}

// ringNow makes the timer fire at once.
func ringNow(fd uintptr) {
	_ = unix.TimerfdSettime(int(fd), 0, &unix.ItimerSpec{Value: unix.Timespec{Nsec: 1}}, nil)
}

// Set wakes an idle process after d, so that a Go timer of the same length fires on time.
func (a *Wakeup) Set(d time.Duration) {
	if a.raw == nil {
		return
	}
	a.after.Value = unix.NsecToTimespec(int64(max(d, 1)))
	_ = a.raw.Control(a.arm)
}

func (a *Wakeup) armed(fd uintptr) {
	_ = unix.TimerfdSettime(int(fd), 0, &a.after, nil) // if it fails, we are a millisecond late
}

// Close releases the timer. Call it after the last Wait.
func (a *Wakeup) Close() {
	if a.file != nil {
		a.file.Close()
	}
}
