package process_test

import (
	"os/signal"
	"syscall"

	"golang.org/x/sys/unix"
)

func clearDeathSignal() error {
	return unix.Prctl(unix.PR_SET_PDEATHSIG, 0, 0, 0, 0)
}

func ignoreTerm() { signal.Ignore(syscall.SIGTERM) }
