//go:build !linux

package process

import (
	"math"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Usage holds the resource usage of a process.
type Usage struct {
	CPU         time.Duration
	RSS, Shared int64
	OpenFiles   int
}

// AvailableMemory, OOMKills, ReadUsage, Paused and TotalMemory return zero values, because they are implemented only
// for Linux.
func AvailableMemory() uint64 { return 0 }
func OOMKills() uint64        { return 0 }
func ReadUsage(int) Usage     { return Usage{} }
func Paused(int) bool         { return false }
func TotalMemory() uint64     { return 0 }

// Reserve does nothing: on other systems than Linux, two sockets cannot share a port in this way.
func Reserve(int) (*os.File, error) { return nil, nil }

// descriptorCeiling returns the number of files that a process may open on macOS,
// whose setrlimit refuses a soft limit above it although the hard one is
// unlimited.
func descriptorCeiling() uint64 {
	n, err := unix.SysctlUint32("kern.maxfilesperproc")
	if err != nil {
		return math.MaxUint64
	}
	return uint64(n)
}

// endWithParent does nothing, because the kernel has no such signal. Only the parent pipe ends the child.
func endWithParent(*syscall.SysProcAttr) {}
