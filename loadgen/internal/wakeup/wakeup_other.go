//go:build !linux

// Package wakeup ends the waits of a goroutine on time also in an idle process.
package wakeup

import "time"

// Wakeup does nothing here: on a Go timer an idle process is up to a millisecond late.
type Wakeup struct{}

func New() *Wakeup                                 { return &Wakeup{} }
func (*Wakeup) Wait(time.Time, time.Duration) bool { return false }
func (*Wakeup) Ring()                              {}
func (*Wakeup) Set(time.Duration)                  {}
func (*Wakeup) Close()                             {}
