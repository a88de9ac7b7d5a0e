//go:build !linux

package containers

import "syscall"

// endWithParent does nothing: only Linux can signal a process when its parent ends.
func endWithParent(*syscall.SysProcAttr, syscall.Signal) {}
