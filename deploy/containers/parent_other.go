//go:build !linux

package containers

import "syscall"

// endWithParent does nothing: only Linux has containers and such a signal.
func endWithParent(*syscall.SysProcAttr, syscall.Signal) {}
