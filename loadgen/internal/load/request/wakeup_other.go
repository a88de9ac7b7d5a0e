//go:build !linux

package request

import "time"

// wakeup does nothing here: on a Go timer an idle process is up to a millisecond late.
type wakeup struct{}

func newWakeup() *wakeup                           { return &wakeup{} }
func (*wakeup) wait(time.Time, time.Duration) bool { return false }
func (*wakeup) ring()                              {}
func (*wakeup) set(time.Duration)                  {}
func (*wakeup) close()                             {}
