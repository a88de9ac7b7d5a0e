//go:build !linux

package watch

import "syscall"

// unread is not known here.
func unread(syscall.Conn) int64 { return 0 }
