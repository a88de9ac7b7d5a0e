//go:build race

package h2conn

import (
	"os"
	"syscall"
)

// null is a file for empty reads and writes. The race detector does not see the raw system calls of this package, but
// it sees these. It assumes that each syscall.Read happens after all earlier calls of syscall.Write.
var null, _ = syscall.Open(os.DevNull, syscall.O_RDWR|syscall.O_CLOEXEC, 0)

// rawRead tells the race detector that a raw read has succeeded, rawWrite that a raw write follows.
func rawRead()  { _, _ = syscall.Read(null, nil) }
func rawWrite() { _, _ = syscall.Write(null, nil) }
