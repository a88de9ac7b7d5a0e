//go:build race

package h2conn

import (
	"os"
	"syscall"
)

// The race detector assumes that each syscall.Read happens after all earlier calls of syscall.Write. It does not see
// the raw system calls of this package. Therefore the package also makes an empty read or write that it does see.
var null, _ = syscall.Open(os.DevNull, syscall.O_RDWR|syscall.O_CLOEXEC, 0)

// rawRead tells the race detector about a raw read that has succeeded, rawWrite about a raw write that follows.
func rawRead()  { _, _ = syscall.Read(null, nil) }
func rawWrite() { _, _ = syscall.Write(null, nil) }
