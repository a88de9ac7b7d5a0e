//go:build !linux

package generator

import (
	"os"
	"syscall"
)

// peakRSS returns the largest resident set size so far, in bytes. On Darwin, getrusage reports bytes.
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

// memoryLimit returns 0, because the limit is unknown on this operating system.
func memoryLimit() int64 { return 0 }

// readMachine returns an unknown usage.
func readMachine() usage { return usage{} }

type event struct{}

var instructions event

// counter does nothing, because hardware counters are not supported on this operating system.
type counter struct{}

func open(int, event) []*counter { return nil }

func (*counter) read() (uint64, error) { return 0, nil }

func (*counter) close() error { return nil }
