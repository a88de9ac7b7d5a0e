package containers

import "syscall"

// endWithParent asks the kernel to send the child a signal when this process ends.
func endWithParent(attr *syscall.SysProcAttr, s syscall.Signal) { attr.Pdeathsig = s }
