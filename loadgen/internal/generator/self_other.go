//go:build !linux

package generator

import (
	"os"
	"syscall"
)

// peakRSS returns the largest resident set so far, in bytes (Darwin's unit).
func peakRSS() int64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return u.Maxrss
}

func openDescriptors() int {
	entries, err := os.ReadDir("/dev/fd")
	if err != nil {
		return 0
	}
	return len(entries)
}

// memoryLimit is not known here.
func memoryLimit() int64 { return 0 }
