//go:build !linux

// Package wakeup ends the waits of a goroutine on time, even in an idle process.
package wakeup

import "time"

// Wakeup does nothing on this operating system. With a Go timer, an idle process wakes up to a millisecond late.
type Wakeup struct{}

func New() *Wakeup                                 { return &Wakeup{} }
func (*Wakeup) Wait(time.Time, time.Duration) bool { return false }
func (*Wakeup) Ring()                              {}
func (*Wakeup) Set(time.Duration)                  {}
func (*Wakeup) Close()                             {}
