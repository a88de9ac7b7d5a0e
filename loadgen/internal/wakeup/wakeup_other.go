//go:build !linux

// Package wakeup lets a goroutine wait for a precise time, even in an idle process.
package wakeup

import "time"

// Wakeup does nothing on this operating system. Go timers may then fire up to a millisecond late in an idle process.
type Wakeup struct{}

func New() *Wakeup                                 { return &Wakeup{} }
func (*Wakeup) Wait(time.Time, time.Duration) bool { return false }
func (*Wakeup) Ring()                              {}
func (*Wakeup) Set(time.Duration)                  {}
func (*Wakeup) Close()                             {}
