//go:build !linux

package request

import "time"

// alarm does nothing here: an idle process is up to a millisecond late.
type alarm struct{}

func newAlarm() *alarm           { return &alarm{} }
func (*alarm) set(time.Duration) {}
func (*alarm) close()            {}
