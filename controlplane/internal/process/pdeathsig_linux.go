package process

import "syscall"

// endWithParent asks the kernel to kill the child when the thread that
// started it ends. It works even if the child is stopped or never gets as far
// as DieWithParent.
func endWithParent(attr *syscall.SysProcAttr) {
	attr.Pdeathsig = syscall.SIGKILL
}
