//go:build !linux

package request

import "time"

// alarm does nothing here: on a Go timer an idle process is up to a millisecond late.
type alarm struct{}

func newAlarm() *alarm                            { return &alarm{} }
func (*alarm) wait(time.Time, time.Duration) bool { return false }
func (*alarm) ring()                              {}
func (*alarm) set(time.Duration)                  {}
func (*alarm) close()                             {}
