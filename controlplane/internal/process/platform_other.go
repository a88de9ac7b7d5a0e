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

// AvailableMemory returns zero, because it is implemented only for Linux. OOMKills, ReadUsage, Paused and TotalMemory
// also return zero values for this reason.
func AvailableMemory() uint64 { return 0 }
func OOMKills() uint64        { return 0 }
func ReadUsage(int) Usage     { return Usage{} }
func Paused(int) bool         { return false }
func TotalMemory() uint64     { return 0 }

// Reserve does nothing. On Linux it binds a second socket to the port of a component. Other systems do not allow that.
func Reserve(int) (*os.File, error) { return nil, nil }

// descriptorCeiling returns the maximum number of open files of a process on macOS. setrlimit refuses a higher soft
// limit there, although the hard limit is unlimited.
func descriptorCeiling() uint64 {
	n, err := unix.SysctlUint32("kern.maxfilesperproc")
	if err != nil {
		return math.MaxUint64
	}
	return uint64(n)
}

// endWithParent does nothing, because this kernel cannot signal a child when its parent ends. Only the parent pipe ends
// the child.
func endWithParent(*syscall.SysProcAttr) {}
