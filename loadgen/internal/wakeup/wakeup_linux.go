// Package wakeup lets a goroutine wait for a precise time, even in an idle process.
package wakeup

import (
	"os"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Wakeup lets one goroutine wait for a precise time with a timerfd. The runtime polls a timerfd like a socket. This is
// cheaper and more precise than a Go timer:
//
//   - Setting a Go timer interrupts the thread that polls the network, unless another timer is due earlier. When the
//     timer is due, the runtime wakes a second thread in addition to the thread that runs it. With a timerfd, the
//     polling thread runs the waiting goroutine itself.
//   - In an idle process, Go rounds waits up to a millisecond, the unit of epoll_wait (runtime/netpoll_epoll.go).
//   - A timerfd does not wake the runtime's monitor thread, which sleeps until the next Go timer is due.
//
// A goroutine that must select on a Go timer can call Set with the duration of the timer. The timer then fires on time,
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
	arm     func(fd uintptr) // method values, kept to avoid a new closure for each wait
	settle  func(fd uintptr) bool
}

// States of a Wakeup. If the goroutine is asleep, Ring fires the timer. Otherwise Ring prevents the goroutine from
// falling asleep. No call of Ring is lost.
const (
	awake int32 = iota
	asleep
	rung // Ring was called, but has not ended a wait yet
)

// New returns a Wakeup. If the system has no timerfd, or if time.Now is not the system's clock (as in
// testing/synctest), the Wakeup does nothing.
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

// Wait waits until the time start+until or a call of Ring. It returns false if it cannot wait, for example because
// there is no timerfd.
func (a *Wakeup) Wait(start time.Time, until time.Duration) bool {
	if a.raw == nil {
		return false
	}
	a.start, a.until = start, until
	err := a.raw.Read(a.settle)
	a.state.Store(awake) // earlier rings are handled
	return err == nil && a.failure == nil
}

// settled sets the timer and reports whether the wait is over. The runtime calls it before it waits for the file
// descriptor, and again each time the descriptor is ready. The runtime uses edge-triggered epoll, so the expirations of
// the timer need not be read.
func (a *Wakeup) settled(fd uintptr) bool {
	a.state.CompareAndSwap(asleep, awake)
	wait := a.until - time.Since(a.start)
	if wait <= 0 || a.state.Load() == rung {
		return true
	}
	a.after.Value = unix.NsecToTimespec(int64(wait))
	if a.failure = unix.TimerfdSettime(int(fd), 0, &a.after, nil); a.failure != nil {
		return true // the timer could not be set, so nothing would end the wait
	}
	return !a.state.CompareAndSwap(awake, asleep)
}

// Ring ends the current wait or, if no goroutine waits, the next one. It is safe for concurrent use.
func (a *Wakeup) Ring() {
	if a.raw != nil && a.state.Swap(rung) == asleep {
		_ = a.raw.Control(ringNow) // an error means that the file is closed, so nothing waits
	}
}

// ringNow makes the timer fire immediately.
func ringNow(fd uintptr) {
	_ = unix.TimerfdSettime(int(fd), 0, &unix.ItimerSpec{Value: unix.Timespec{Nsec: 1}}, nil)
}

// Set wakes the process after d, so that a Go timer of the same duration fires on time even if the process is idle.
func (a *Wakeup) Set(d time.Duration) {
	if a.raw == nil {
		return
	}
	a.after.Value = unix.NsecToTimespec(int64(max(d, 1)))
	_ = a.raw.Control(a.arm)
}

func (a *Wakeup) armed(fd uintptr) {
	_ = unix.TimerfdSettime(int(fd), 0, &a.after, nil) // if it fails, the Go timer fires up to a millisecond late
}

// Close releases the timer. Call it after the last Wait.
func (a *Wakeup) Close() {
	if a.file != nil {
		a.file.Close()
	}
}
