//go:build !linux

package process

import "syscall"

// endWithParent does nothing where the kernel has no such signal: the parent
// pipe alone ends the child.
func endWithParent(*syscall.SysProcAttr) {}
