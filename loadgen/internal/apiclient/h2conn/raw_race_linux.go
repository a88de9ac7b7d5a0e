//go:build race

package h2conn

import (
	"os"
	"syscall"
)

// null is a file for empty reads and writes that the race detector sees. It assumes that each syscall.Read happens
// after all earlier calls of syscall.Write, but does not see the raw system calls of this package.
var null, _ = syscall.Open(os.DevNull, syscall.O_RDWR|syscall.O_CLOEXEC, 0)

// rawRead tells the race detector about a raw read that has succeeded, rawWrite about a raw write that follows.
func rawRead()  { _, _ = syscall.Read(null, nil) }
func rawWrite() { _, _ = syscall.Write(null, nil) }
